// softmax over the middle axis of [outer, axis, inner], float32, stable (row maximum subtracted):
//   y = exp(scale x + mask - max) / sum, or with `log` its logarithm. A row of only -inf gives NaN, as ONNX does.
// The mask is optional: mask[o / mask_div % mask_rows * mask_row + a * mask_col], for attention (inner is 1 then).
#pragma once

#include "../kernel.h"

namespace zoi {

// clang-format off
#define ZOI_SOFTMAX_FIELDS(I, A, R, S) \
  I(outer) \
  I(axis) \
  I(inner) I(x_outer) I(x_axis) I(y_outer) I(y_axis) I(log) R(scale) I(mask_div) I(mask_rows) I(mask_row) I(mask_col)
// clang-format on
// x_outer, x_axis: elements between steps along outer and axis; inner is contiguous.
ZOI_PROBLEM(SoftmaxProblem, ZOI_SOFTMAX_FIELDS)

enum SoftmaxOperand { kSoftmaxX, kSoftmaxMask, kSoftmaxY, kSoftmaxOperands };
struct SoftmaxArgs {
  const float* x;
  const float* mask;  // or null
  float* y;
  SoftmaxProblem problem;
};

#define ZOI_SOFTMAX_KERNELS(K) K(softmax_f32_avx512) K(softmax_f32_avx2) K(softmax_f32_generic)
ZOI_SOFTMAX_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
