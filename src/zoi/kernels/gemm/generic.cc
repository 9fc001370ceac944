// One dot product after another, in double.
#include "../activation_generic.h"
#include "gemm.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const GemmArgs*>(raw);
  const GemmProblem& p = args.problem;
  const int64_t row = p.b_transposed ? 1 : p.n, col = p.b_transposed ? p.k : 1;
  const Range range = lane_range(p.m * p.n, lane);
  for (int64_t at = range.begin; at < range.end; at++) {
    const int64_t i = at / p.n, j = at % p.n;
    double sum = args.bias ? args.bias[j] : 0.0;
    for (int64_t k = 0; k < p.k; k++) sum += static_cast<double>(args.a[i * p.a_row + k]) * args.b[k * row + j * col];
    const double residual = args.residual ? args.residual[i * p.r_row + j] : 0.0;
    if (!p.residual_after) sum += residual;
    float y = activate(p.act, static_cast<float>(sum), p.act_p0, p.act_p1);
    if (p.residual_after) y = static_cast<float>(y + residual);
    args.c[i * p.c_row + j] = y;
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const GemmProblem*>(problem);
  return p.m * p.n;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const GemmProblem*>(problem);
  return 4.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

}  // namespace

extern const Kernel gemm_f32_generic = {
    .name = "gemm_f32_generic",
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
