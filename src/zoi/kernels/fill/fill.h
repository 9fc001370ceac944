// fill: y[i0..i5] = value over up to 6 strided dimensions. `bits` is the element's bit pattern, low bytes first.
#pragma once

#include "../kernel.h"

namespace zoi {

inline constexpr int kFillDims = 6;
#define ZOI_FILL_FIELDS(I, A, R, S) I(elem) I(ndim) A(shape, 6) A(y_stride, 6) I(bits)
ZOI_PROBLEM(FillProblem, ZOI_FILL_FIELDS)

enum FillOperand { kFillY, kFillOperands };
struct FillArgs {
  void* y;
  FillProblem problem;
};

#define ZOI_FILL_KERNELS(K) K(fill_avx512) K(fill_avx2) K(fill_generic)
ZOI_FILL_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
