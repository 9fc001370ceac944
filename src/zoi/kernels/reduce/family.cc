#include <iterator>

#include "../check.h"
#include "../dtype.h"
#include "reduce.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  if (p.op < 0 || p.op >= kReduceCount) return "unknown reduction";
  if (p.dtype != kF32 && p.dtype != kI32 && p.dtype != kI64) return "reduces float32, int32 and int64 only";
  if (p.kept_dims < 0 || p.kept_dims > kReduceDims || p.reduced_dims < 0 || p.reduced_dims > kReduceDims)
    return "there must be 0 to 6 kept and 0 to 6 reduced dimensions";
  const bool arg = p.op == kReduceArgMax || p.op == kReduceArgMin;
  if (arg && p.reduced_dims != 1) return "ArgMax and ArgMin reduce one dimension";
  Dim dims[2 * kReduceDims] = {};
  int64_t kept = 1, reduced = 1, work;
  const auto add = [&](Dim* at, int64_t* count, int64_t size, int64_t stride) {
    *at = {size, stride};
    return size >= 0 && size <= kMaxSize && !__builtin_mul_overflow(*count, size, count) && *count <= kMaxWork;
  };
  for (int64_t d = 0; d < kReduceDims; d++) {
    dims[d] = dims[kReduceDims + d] = {1, 0};
    if (d < p.kept_dims && !add(dims + d, &kept, p.kept_shape[d], p.kept_stride[d])) return "too much work";
    if (d < p.reduced_dims && !add(dims + kReduceDims + d, &reduced, p.reduced_shape[d], p.reduced_stride[d]))
      return "too much work";
  }
  if (__builtin_mul_overflow(kept, reduced, &work) || work > kMaxWork) return "too much work";
  if (!fits(extents[kReduceX], dtype_bytes(p.dtype), dims)) return "x is too small";
  const int64_t y_bytes = arg ? 8 : dtype_bytes(p.dtype);
  if (!fits(extents[kReduceY], y_bytes, {{kept, 1}})) return "y is too small";
  return nullptr;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  double count = 1;
  for (int64_t d = 0; d < p.kept_dims; d++) count *= static_cast<double>(p.kept_shape[d]);
  for (int64_t d = 0; d < p.reduced_dims; d++) count *= static_cast<double>(p.reduced_shape[d]);
  return count;
}

constexpr KernelEntry kKernels[] = {ZOI_REDUCE_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kReduce = {
    "reduce",
    kOperands,
    kReduceOperands,
    kReduceProblemFields,
    std::size(kReduceProblemFields),
    sizeof(ReduceProblem),
    check,
    nullptr,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
