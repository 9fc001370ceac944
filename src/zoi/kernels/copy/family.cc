#include <iterator>

#include "../check.h"
#include "copy.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  if (p.elem != 1 && p.elem != 2 && p.elem != 4 && p.elem != 8) return "elements must have 1, 2, 4 or 8 bytes";
  if (p.ndim < 0 || p.ndim > kCopyDims) return "too many dimensions";
  Dim x[kCopyDims] = {}, y[kCopyDims] = {};
  int64_t count = 1;  // empty dimensions left out: those around them are walked
  bool empty = false, overlaps = false;
  for (int d = 0; d < kCopyDims; d++) {
    const bool used = d < p.ndim;
    if (used && !sizes_at_least(0, {p.shape[d]})) return "a dimension is out of range";
    x[d] = used ? Dim{p.shape[d], p.x_stride[d]} : Dim{1, 0};
    y[d] = used ? Dim{p.shape[d], p.y_stride[d]} : Dim{1, 0};
    empty |= y[d].size == 0;
    overlaps |= y[d].size > 1 && y[d].stride == 0;
    if (y[d].size > 0 && __builtin_mul_overflow(count, y[d].size, &count)) return "too much work";
  }
  if (overlaps && !empty) return "the output overlaps itself";
  if (count > kMaxWork) return "too much work";
  if (!fits(extents[kCopyX], p.elem, x)) return "x is too small";
  if (!fits(extents[kCopyY], p.elem, y)) return "y is too small";
  return nullptr;
}

double flops(const void*) { return 0; }

constexpr KernelEntry kKernels[] = {ZOI_COPY_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kCopy = {
    "copy", kOperands, kCopyOperands, kCopyProblemFields, std::size(kCopyProblemFields), sizeof(CopyProblem),
    check,  nullptr,   flops,         kKernels,           std::size(kKernels),
};

}  // namespace zoi
