// One output after another, in double.
#include <algorithm>

#include "resize.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const ResizeArgs*>(raw);
  const ResizeProblem& p = args.problem;
  const Range range = lane_range(p.n * p.oh, lane);
  for (int64_t row = range.begin; row < range.end; row++) {
    const int64_t image = row / p.oh, oy = row % p.oh;
    for (int64_t ox = 0; ox < p.ow; ox++)
      for (int64_t c = 0; c < p.c; c++) {
        double sum = 0;
        for (int64_t i = 0; i < p.taps; i++)
          for (int64_t j = 0; j < p.taps; j++) {
            const double h = args.h_weight[oy * p.taps + i], w = args.w_weight[ox * p.taps + j];
            if (h == 0 || w == 0) continue;
            const int64_t iy = std::clamp<int64_t>(args.h_index[oy * p.taps + i], 0, p.ih - 1);
            const int64_t ix = std::clamp<int64_t>(args.w_index[ox * p.taps + j], 0, p.iw - 1);
            sum += h * w * args.x[image * p.x_image + iy * p.x_row + ix * p.x_pixel + c];
          }
        args.y[image * p.y_image + oy * p.y_row + ox * p.y_pixel + c] = static_cast<float>(sum);
      }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const ResizeProblem*>(problem);
  return p.n * p.oh;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const ResizeProblem*>(problem);
  return 6.0 * static_cast<double>(p.n * p.oh * p.ow * p.c) * static_cast<double>(p.taps * p.taps);
}

}  // namespace

extern const Kernel resize_f32_generic = {
    .name = "resize_f32_generic",
    .arch = Arch::generic,
    .run = run,
    .supports = supports,
    .slices = slices,
    .scratch = nullptr,
    .packed_bytes = nullptr,
    .pack = nullptr,
    .cost = cost,
    .exact = true,
};

}  // namespace zoi
