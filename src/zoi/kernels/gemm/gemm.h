// gemm: c[i,j] = act(sum_k a[i,k] b[k,j] + bias[j] + residual[i,j]), b constant, float32, row-major.
// With residual_after: c = act(sum + bias) + residual. `c` may be the same memory as `residual` (equal strides).
#pragma once

#include "../activation.h"

namespace zoi {

// a_row, c_row, r_row: elements between rows. b_transposed: plain b is [n,k] rather than [k,n].
// clang-format off
#define ZOI_GEMM_FIELDS(I, A, R, S) \
  I(m) I(n) I(k) I(a_row) I(c_row) I(r_row) I(b_transposed) I(residual_after) I(act) R(act_p0) R(act_p1)
// clang-format on
ZOI_PROBLEM(GemmProblem, ZOI_GEMM_FIELDS)

enum GemmOperand { kGemmA, kGemmB, kGemmBias, kGemmResidual, kGemmC, kGemmOperands };
struct GemmArgs {
  const float* a;
  const float* b;         // packed as the kernel's record says
  const float* bias;      // [n] or null
  const float* residual;  // [m, n] with r_row, or null
  float* c;
  GemmProblem problem;
};

#define ZOI_GEMM_KERNELS(K) \
  K(gemm_f32_avx512_row) K(gemm_f32_avx512) K(gemm_f32_avx2_row) K(gemm_f32_avx2) K(gemm_f32_generic)
ZOI_GEMM_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
