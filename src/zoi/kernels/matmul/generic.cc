// One dot product after another, in double.
#include "../activation_generic.h"
#include "matmul.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const MatmulArgs*>(raw);
  const MatmulProblem& p = args.problem;
  const Range range = lane_range(p.batch0 * p.batch1 * p.m, lane);
  for (int64_t at = range.begin; at < range.end; at++) {
    const int64_t i = at % p.m, h = at / p.m % p.batch1, b = at / p.m / p.batch1;
    const float* a = args.a + b * p.a_batch0 + h * p.a_batch1 + i * p.a_row;
    const float* right = args.b + b * p.b_batch0 + h * p.b_batch1;
    float* c = args.c + b * p.c_batch0 + h * p.c_batch1 + i * p.c_row;
    const float* d = args.add ? args.add + b * p.d_batch0 + h * p.d_batch1 + i * p.d_row : nullptr;
    for (int64_t j = 0; j < p.n; j++) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; k++) sum += static_cast<double>(a[k * p.a_col]) * right[k * p.b_row + j * p.b_col];
      sum = p.alpha * sum + (d ? d[j * p.d_col] : 0.0f);
      c[j] = activate(p.act, static_cast<float>(sum), p.act_p0, p.act_p1);
    }
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const MatmulProblem*>(problem);
  return p.batch0 * p.batch1 * p.m;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const MatmulProblem*>(problem);
  return 4.0 * static_cast<double>(p.batch0 * p.batch1 * p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

}  // namespace

extern const Kernel matmul_f32_generic = {
    .name = "matmul_f32_generic",
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
