// gather: y[o,i,:] = x[o,index[i],:] along the middle axis of [outer, axis, inner] (ONNX Gather). A negative index
// counts from the end; one out of range reports Fault::index_out_of_range and writes zeros.
#pragma once

#include "../kernel.h"

namespace zoi {

// clang-format off
#define ZOI_GATHER_FIELDS(I, A, R, S) \
  I(elem) I(outer) I(axis) I(inner) I(indices) I(index_dtype) I(x_outer) I(x_axis) I(y_outer) I(y_axis)
// clang-format on
// index_dtype: kI32 or kI64. inner elements are contiguous in x and y.
ZOI_PROBLEM(GatherProblem, ZOI_GATHER_FIELDS)

enum GatherOperand { kGatherX, kGatherIndex, kGatherY, kGatherOperands };
struct GatherArgs {
  const void* x;  // may be a constant, read in place
  const void* index;
  void* y;
  GatherProblem problem;
};

#define ZOI_GATHER_KERNELS(K) K(gather_avx512) K(gather_avx2) K(gather_generic)
ZOI_GATHER_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
