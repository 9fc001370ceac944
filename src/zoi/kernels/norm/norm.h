// norm: layer normalisation of rows, float32. With v = x + residual:
//   y = (v - mean(v)) / sqrt(var(v) + epsilon) * scale + bias;  with `rms`: y = v / sqrt(mean(v^2) + epsilon) * scale +
//   bias
// Two passes (mean first), so a large mean loses nothing. If `sum` is present it receives v.
#pragma once

#include "../kernel.h"

namespace zoi {

#define ZOI_NORM_FIELDS(I, A, R, S) I(rows) I(cols) I(x_row) I(r_row) I(y_row) I(s_row) I(rms) R(epsilon)
ZOI_PROBLEM(NormProblem, ZOI_NORM_FIELDS)

enum NormOperand { kNormX, kNormResidual, kNormScale, kNormBias, kNormY, kNormSum, kNormOperands };
struct NormArgs {
  const float* x;
  const float* residual;  // or null
  const float* scale;     // [cols] or null
  const float* bias;      // [cols] or null
  float* y;
  float* sum;  // or null
  NormProblem problem;
};

#define ZOI_NORM_KERNELS(K) K(norm_f32_avx512) K(norm_f32_avx2) K(norm_f32_generic)
ZOI_NORM_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
