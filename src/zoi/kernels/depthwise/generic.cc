// One output after another, in double. Taps outside the image are left out.
#include "../activation_generic.h"
#include "depthwise.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const DepthwiseArgs*>(raw);
  const DepthwiseProblem& p = args.problem;
  const Range range = lane_range(p.n * p.oh, lane);
  for (int64_t row = range.begin; row < range.end; row++) {
    const int64_t image = row / p.oh, oy = row % p.oh;
    for (int64_t ox = 0; ox < p.ow; ox++)
      for (int64_t c = 0; c < p.c; c++) {
        double sum = args.bias ? args.bias[c] : 0.0;
        for (int64_t ky = 0; ky < p.kh; ky++) {
          const int64_t iy = oy * p.sh + ky * p.dh - p.pt;
          if (iy < 0 || iy >= p.ih) continue;
          for (int64_t kx = 0; kx < p.kw; kx++) {
            const int64_t ix = ox * p.sw + kx * p.dw - p.pl;
            if (ix < 0 || ix >= p.iw) continue;
            const float x = args.x[image * p.x_image + iy * p.x_row + ix * p.x_pixel + c];
            sum += static_cast<double>(x) * args.w[(c * p.kh + ky) * p.kw + kx];
          }
        }
        args.y[image * p.y_image + oy * p.y_row + ox * p.y_pixel + c] =
            static_cast<float>(activate_value(p.act, sum, p.act_p0, p.act_p1));
      }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return p.n * p.oh;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return 4.0 * static_cast<double>(p.n * p.oh * p.ow * p.c) * static_cast<double>(p.kh * p.kw);
}

}  // namespace

extern const Kernel depthwise_f32_generic = {
    .name = "depthwise_f32_generic",
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
