// One output after another; averages in double. A window without a pixel gives -inf as a maximum, 0 as an average.
#include <cmath>

#include "pool.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const PoolArgs*>(raw);
  const PoolProblem& p = args.problem;
  const Range range = lane_range(p.n * p.oh, lane);
  for (int64_t row = range.begin; row < range.end; row++) {
    const int64_t image = row / p.oh, oy = row % p.oh;
    for (int64_t ox = 0; ox < p.ow; ox++)
      for (int64_t c = 0; c < p.c; c++) {
        float max = -INFINITY;
        double sum = 0;
        int64_t inside = 0, padded = 0;
        for (int64_t ky = 0; ky < p.kh; ky++)
          for (int64_t kx = 0; kx < p.kw; kx++) {
            const int64_t iy = oy * p.sh + ky * p.dh - p.pt, ix = ox * p.sw + kx * p.dw - p.pl;
            padded += iy < p.ih + p.pb && ix < p.iw + p.pr;
            if (iy < 0 || iy >= p.ih || ix < 0 || ix >= p.iw) continue;
            const float x = args.x[image * p.x_image + iy * p.x_row + ix * p.x_pixel + c];
            max = x > max || std::isnan(x) ? x : max;
            sum += x;
            inside++;
          }
        const int64_t count = p.count_include_pad ? padded : inside;
        args.y[image * p.y_image + oy * p.y_row + ox * p.y_pixel + c] =
            p.mode == kPoolMax ? max
            : inside           ? static_cast<float>(sum / static_cast<double>(count))
                               : 0.0f;
      }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const PoolProblem*>(problem);
  return p.n * p.oh;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const PoolProblem*>(problem);
  return 4.0 * static_cast<double>(p.n * p.oh * p.ow * p.c) * static_cast<double>(p.kh * p.kw);
}

}  // namespace

extern const Kernel pool_f32_generic = {
    .name = "pool_f32_generic",
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
