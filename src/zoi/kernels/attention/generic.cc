// One row of scores after another, in double, in lane scratch.
#include <cmath>

#include "attention.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const AttentionArgs*>(raw);
  const AttentionProblem& p = args.problem;
  const Range range = lane_range(p.batch0 * p.batch1 * p.m, lane);
  auto* scores = reinterpret_cast<double*>(lane.scratch);
  for (int64_t r = range.begin; r < range.end; r++) {
    const int64_t i = r % p.m, h = r / p.m % p.batch1, b = r / p.m / p.batch1;
    const float* q = args.q + b * p.q_batch0 + h * p.q_batch1 + i * p.q_row;
    const float* k = args.k + b * p.k_batch0 + h * p.k_batch1;
    const float* v = args.v + b * p.v_batch0 + h * p.v_batch1;
    const float* mask = args.mask ? args.mask + b * p.mask_batch0 + h * p.mask_batch1 + i * p.mask_row : nullptr;
    float* y = args.y + b * p.y_batch0 + h * p.y_batch1 + i * p.y_row;
    double max = -INFINITY;
    for (int64_t j = 0; j < p.n; j++) {
      double sum = 0;
      for (int64_t c = 0; c < p.d; c++) sum += static_cast<double>(q[c]) * k[j * p.k_row + c];
      scores[j] = p.scale * sum + (mask ? mask[j * p.mask_col] : 0.0f);
      max = scores[j] > max ? scores[j] : max;
    }
    double total = 0;
    for (int64_t j = 0; j < p.n; j++) total += scores[j] = std::exp(scores[j] - max);
    for (int64_t c = 0; c < p.dv; c++) {
      double sum = 0;
      for (int64_t j = 0; j < p.n; j++) sum += scores[j] * v[j * p.v_row + c];
      y[c] = static_cast<float>(sum / total);
    }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  return p.batch0 * p.batch1 * p.m;
}
int64_t scratch(const void* problem) { return static_cast<const AttentionProblem*>(problem)->n * 8; }
double cost(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  return 4.0 * static_cast<double>(p.batch0 * p.batch1 * p.m) * static_cast<double>(p.n * (p.d + p.dv));
}

}  // namespace

extern const Kernel attention_f32_generic = {
    .name = "attention_f32_generic",
    .arch = Arch::generic,
    .run = run,
    .supports = supports,
    .slices = slices,
    .scratch = scratch,
    .packed_bytes = nullptr,
    .pack = nullptr,
    .cost = cost,
    .exact = true,
};

}  // namespace zoi
