// reduce: y[kept] = op over x[kept, reduced]; float32 (and kI64, kI32 in generic); y is contiguous in the kept order.
// An empty reduction gives the operation's identity. ArgMax and ArgMin reduce one dimension and give int64 indices.
#pragma once

#include "../kernel.h"

namespace zoi {

inline constexpr int64_t kReduceDims = 6;
/// Values are written into .zoi files: append only.
enum ReduceOp : int64_t {
  kReduceSum = 0,
  kReduceMean,
  kReduceMax,
  kReduceMin,
  kReduceProd,
  kReduceL1,
  kReduceL2,
  kReduceSumSquare,
  kReduceLogSum,
  kReduceLogSumExp,
  kReduceArgMax,
  kReduceArgMin,
  kReduceCount
};
// Max and Min give NaN if any element is NaN. select_last: ArgMax/ArgMin take the last of equals.
// clang-format off
#define ZOI_REDUCE_FIELDS(I, A, R, S) \
  I(op) \
  I(dtype) \
  I(kept_dims) \
  A(kept_shape, 6) A(kept_stride, 6) I(reduced_dims) A(reduced_shape, 6) A(reduced_stride, 6) I(select_last)
// clang-format on
ZOI_PROBLEM(ReduceProblem, ZOI_REDUCE_FIELDS)

enum ReduceOperand { kReduceX, kReduceY, kReduceOperands };
struct ReduceArgs {
  const void* x;
  void* y;
  ReduceProblem problem;
};

#define ZOI_REDUCE_KERNELS(K) K(reduce_avx512) K(reduce_avx2) K(reduce_generic)
ZOI_REDUCE_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
