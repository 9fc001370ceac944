// matmul: c[p,q,i,j] = act(alpha * sum_k a[p,q,i,k] b[p,q,k,j] + add[p,q,i,j]), both operands computed, float32.
// Every stride is in elements and may be 0 (broadcast) or anything else, but c's columns are contiguous.
#pragma once

#include "../activation.h"

namespace zoi {

// clang-format off
#define ZOI_MATMUL_FIELDS(I, A, R, S) \
  I(batch0) \
  I(batch1) \
  I(m) \
  I(n) \
  I(k) \
  I(a_batch0) \
  I(a_batch1) \
  I(a_row) \
  I(a_col) \
  I(b_batch0) I(b_batch1) I(b_row) I(b_col) I(c_batch0) I(c_batch1) I(c_row) I(d_batch0) I(d_batch1) I(d_row) I(d_col) \
      R(alpha) I(act) R(act_p0) R(act_p1)
// clang-format on
ZOI_PROBLEM(MatmulProblem, ZOI_MATMUL_FIELDS)

enum MatmulOperand { kMatmulA, kMatmulB, kMatmulAdd, kMatmulC, kMatmulOperands };
struct MatmulArgs {
  const float* a;
  const float* b;
  const float* add;  // or null; strides d_*
  float* c;
  MatmulProblem problem;
};

#define ZOI_MATMUL_KERNELS(K) K(matmul_f32_avx512) K(matmul_f32_avx2) K(matmul_f32_generic)
ZOI_MATMUL_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
