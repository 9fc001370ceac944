// Row after row, in double.
#include <cmath>

#include "norm.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const NormArgs*>(raw);
  const NormProblem& p = args.problem;
  const Range range = lane_range(p.rows, lane);
  const auto cols = static_cast<double>(p.cols);
  for (int64_t row = range.begin; row < range.end; row++) {
    const float* x = args.x + row * p.x_row;
    const float* residual = args.residual ? args.residual + row * p.r_row : nullptr;
    float* y = args.y + row * p.y_row;
    float* sum = args.sum ? args.sum + row * p.s_row : nullptr;
    const auto value = [&](int64_t i) { return residual ? x[i] + residual[i] : x[i]; };  // rounded, as `sum` is
    double mean = 0, variance = 0;
    if (!p.rms)
      for (int64_t i = 0; i < p.cols; i++) mean += value(i) / cols;
    for (int64_t i = 0; i < p.cols; i++) variance += (value(i) - mean) * (value(i) - mean) / cols;
    const double factor = 1.0 / std::sqrt(variance + p.epsilon);
    for (int64_t i = 0; i < p.cols; i++) {
      const float v = value(i);
      if (sum) sum[i] = v;
      y[i] = static_cast<float>((v - mean) * factor * (args.scale ? args.scale[i] : 1.0f) +
                                (args.bias ? args.bias[i] : 0.0f));
    }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) { return static_cast<const NormProblem*>(problem)->rows; }
double cost(const void* problem) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  return 20.0 * static_cast<double>(p.rows) * static_cast<double>(p.cols);
}

}  // namespace

extern const Kernel norm_f32_generic = {
    .name = "norm_f32_generic",
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
