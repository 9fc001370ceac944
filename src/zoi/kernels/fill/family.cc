#include <iterator>

#include "../check.h"
#include "fill.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const FillProblem*>(problem);
  if (p.elem != 1 && p.elem != 2 && p.elem != 4 && p.elem != 8) return "elements must have 1, 2, 4 or 8 bytes";
  if (p.ndim < 0 || p.ndim > kFillDims) return "too many dimensions";
  Dim y[kFillDims] = {};
  int64_t count = 1;  // empty dimensions left out: those around them are walked
  bool empty = false, overlaps = false;
  for (int d = 0; d < kFillDims; d++) {
    const bool used = d < p.ndim;
    if (used && !sizes_at_least(0, {p.shape[d]})) return "a dimension is out of range";
    y[d] = used ? Dim{p.shape[d], p.y_stride[d]} : Dim{1, 0};
    empty |= y[d].size == 0;
    overlaps |= y[d].size > 1 && y[d].stride == 0;
    if (y[d].size > 0 && __builtin_mul_overflow(count, y[d].size, &count)) return "too much work";
  }
  if (overlaps && !empty) return "the output overlaps itself";
  if (count > kMaxWork) return "too much work";
  if (!fits(extents[kFillY], p.elem, y)) return "y is too small";
  return nullptr;
}

double flops(const void*) { return 0; }

constexpr KernelEntry kKernels[] = {ZOI_FILL_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kFill = {
    "fill", kOperands, kFillOperands, kFillProblemFields, std::size(kFillProblemFields), sizeof(FillProblem),
    check,  nullptr,   flops,         kKernels,           std::size(kKernels),
};

}  // namespace zoi
