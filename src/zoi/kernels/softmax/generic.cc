// One column after another, in double.
#include <cmath>

#include "softmax.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const SoftmaxArgs*>(raw);
  const SoftmaxProblem& p = args.problem;
  const Range range = lane_range(p.outer * p.inner, lane);
  for (int64_t column = range.begin; column < range.end; column++) {
    const int64_t o = column / p.inner, inner = column % p.inner;
    const float* x = args.x + o * p.x_outer + inner;
    const float* mask = args.mask ? args.mask + o / p.mask_div % p.mask_rows * p.mask_row : nullptr;
    float* y = args.y + o * p.y_outer + inner;
    const auto value = [&](int64_t a) { return p.scale * x[a * p.x_axis] + (mask ? mask[a * p.mask_col] : 0.0f); };
    double max = -INFINITY;
    for (int64_t a = 0; a < p.axis; a++) max = value(a) > max ? value(a) : max;
    double sum = 0;
    for (int64_t a = 0; a < p.axis; a++) sum += std::exp(value(a) - max);
    const double log_sum = std::log(sum);
    for (int64_t a = 0; a < p.axis; a++) {
      const double v = value(a) - max;
      y[a * p.y_axis] = static_cast<float>(p.log ? v - log_sum : std::exp(v) / sum);
    }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return p.outer * p.inner;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return 150.0 * static_cast<double>(p.outer) * static_cast<double>(p.axis) * static_cast<double>(p.inner);
}

}  // namespace

extern const Kernel softmax_f32_generic = {
    .name = "softmax_f32_generic",
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
