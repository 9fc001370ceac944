// One output element after another, in double.
#include "../activation_generic.h"
#include "conv.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const ConvArgs*>(raw);
  const ConvProblem& p = args.problem;
  const Range range = lane_range(p.n * p.oh * p.ow, lane);
  for (int64_t pixel = range.begin; pixel < range.end; pixel++) {
    const int64_t ox = pixel % p.ow, oy = pixel / p.ow % p.oh, n = pixel / p.ow / p.oh;
    float* y = args.y + n * p.y_image + oy * p.y_row + ox * p.y_pixel;
    const float* r = args.residual ? args.residual + n * p.r_image + oy * p.r_row + ox * p.r_pixel : nullptr;
    for (int64_t o = 0; o < p.groups * p.oc; o++) {
      const float* w = args.w + o * p.ic * p.kh * p.kw;
      double sum = args.bias ? args.bias[o] : 0.0;
      for (int64_t ky = 0; ky < p.kh; ky++) {
        const int64_t iy = oy * p.sh + ky * p.dh - p.pt;
        if (iy < 0 || iy >= p.ih) continue;
        for (int64_t kx = 0; kx < p.kw; kx++) {
          const int64_t ix = ox * p.sw + kx * p.dw - p.pl;
          if (ix < 0 || ix >= p.iw) continue;
          const float* x = args.x + n * p.x_image + iy * p.x_row + ix * p.x_pixel + o / p.oc * p.ic;
          for (int64_t c = 0; c < p.ic; c++) sum += static_cast<double>(x[c]) * w[(c * p.kh + ky) * p.kw + kx];
        }
      }
      const double residual = r ? r[o] : 0.0;
      if (!p.residual_after) sum += residual;
      float v = activate(p.act, static_cast<float>(sum), p.act_p0, p.act_p1);
      if (p.residual_after) v = static_cast<float>(v + residual);
      y[o] = v;
    }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const ConvProblem*>(problem);
  return p.n * p.oh * p.ow;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const ConvProblem*>(problem);
  return 4.0 * static_cast<double>(p.n * p.oh * p.ow) * static_cast<double>(p.groups * p.oc) *
         static_cast<double>(p.ic * p.kh * p.kw);
}

}  // namespace

extern const Kernel conv_f32_generic = {
    .name = "conv_f32_generic",
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
