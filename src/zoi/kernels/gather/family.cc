#include <iterator>

#include "../check.h"
#include "gather.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false}, {"index", Role::in, false}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const GatherProblem*>(problem);
  if (p.elem != 1 && p.elem != 2 && p.elem != 4 && p.elem != 8) return "elements must have 1, 2, 4 or 8 bytes";
  if (p.index_dtype != kI32 && p.index_dtype != kI64) return "indices must be int32 or int64";
  if (!sizes_at_least(0, {p.outer, p.axis, p.inner, p.indices})) return "a dimension is out of range";
  if (!work_is_bounded({p.outer, p.indices, p.inner}) || !work_is_bounded({p.outer, p.indices})) return "too much work";
  if ((p.outer > 1 && p.y_outer == 0 && p.indices > 0) || (p.indices > 1 && p.y_axis == 0))
    return "the output overlaps itself";
  if (!fits(extents[kGatherX], p.elem, {{p.outer, p.x_outer}, {p.axis, p.x_axis}, {p.inner, 1}}))
    return "x is too small";
  if (!fits(extents[kGatherY], p.elem, {{p.outer, p.y_outer}, {p.indices, p.y_axis}, {p.inner, 1}}))
    return "y is too small";
  if (!fits(extents[kGatherIndex], p.index_dtype == kI32 ? 4 : 8, {{p.indices, 1}})) return "the index is too small";
  return nullptr;
}

double flops(const void*) { return 0; }

constexpr KernelEntry kKernels[] = {ZOI_GATHER_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kGather = {
    "gather",
    kOperands,
    kGatherOperands,
    kGatherProblemFields,
    std::size(kGatherProblemFields),
    sizeof(GatherProblem),
    check,
    nullptr,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
