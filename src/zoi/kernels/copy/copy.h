// copy: y[i0..i5] = x[i0..i5] over up to 6 dimensions with any strides (in elements; x's may be negative or 0).
// Transposes, slices, concatenation, expansion: all that the planner could not turn into a view.
#pragma once

#include "../kernel.h"

namespace zoi {

inline constexpr int kCopyDims = 6;
#define ZOI_COPY_FIELDS(I, A, R, S) I(elem) I(ndim) A(shape, 6) A(x_stride, 6) A(y_stride, 6)
// elem: bytes of an element: 1, 2, 4 or 8.
ZOI_PROBLEM(CopyProblem, ZOI_COPY_FIELDS)

enum CopyOperand { kCopyX, kCopyY, kCopyOperands };
struct CopyArgs {
  const void* x;
  void* y;
  CopyProblem problem;
};

#define ZOI_COPY_KERNELS(K) K(copy_avx512) K(copy_avx2) K(copy_generic)
ZOI_COPY_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
