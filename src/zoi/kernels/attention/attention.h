// attention: for each of batch0 x batch1 heads, y = softmax(scale q k^T + mask) v, float32.
//   q [m, d], k [n, d], v [n, dv], mask [m, n] added before the softmax, y [m, dv].
// A head's rows may be any distance apart (*_row), so heads interleaved in [rows, heads * d] need no copy; the last
// dimension is contiguous. A row whose scores are all -inf gives NaN, as softmax does.
#pragma once

#include "../kernel.h"

namespace zoi {

// clang-format off
#define ZOI_ATTENTION_FIELDS(I, A, R, S) \
  I(batch0) I(batch1) I(m) I(n) I(d) I(dv) I(q_batch0) I(q_batch1) I(q_row) I(k_batch0) I(k_batch1) I(k_row) \
  I(v_batch0) I(v_batch1) I(v_row) I(mask_batch0) I(mask_batch1) I(mask_row) I(mask_col) \
  I(y_batch0) I(y_batch1) I(y_row) R(scale)
// clang-format on
ZOI_PROBLEM(AttentionProblem, ZOI_ATTENTION_FIELDS)

enum AttentionOperand { kAttentionQ, kAttentionK, kAttentionV, kAttentionMask, kAttentionY, kAttentionOperands };
struct AttentionArgs {
  const float* q;
  const float* k;
  const float* v;
  const float* mask;  // or null
  float* y;
  AttentionProblem problem;
};

#define ZOI_ATTENTION_KERNELS(K) K(attention_f32_avx512) K(attention_f32_avx2) K(attention_f32_generic)
ZOI_ATTENTION_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
