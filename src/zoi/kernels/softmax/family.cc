#include <iterator>

#include "../check.h"
#include "softmax.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false}, {"mask", Role::in, true}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  if (!sizes_at_least(0, {p.outer, p.axis, p.inner})) return "a dimension is out of range";
  if (!work_is_bounded({p.outer, p.axis, p.inner})) return "too much work";
  if ((p.outer > 1 && p.y_outer == 0) || (p.axis > 1 && p.y_axis == 0)) return "the output overlaps itself";
  if (!fits(extents[kSoftmaxX], 4, {{p.outer, p.x_outer}, {p.axis, p.x_axis}, {p.inner, 1}})) return "x is too small";
  if (!fits(extents[kSoftmaxY], 4, {{p.outer, p.y_outer}, {p.axis, p.y_axis}, {p.inner, 1}})) return "y is too small";
  if (!extents[kSoftmaxMask].present) return nullptr;
  if (p.inner != 1) return "a mask needs inner == 1";
  if (p.mask_div < 1 || !sizes_at_least(1, {p.mask_rows})) return "the mask's divisor and rows must be positive";
  if (!fits(extents[kSoftmaxMask], 4, {{p.mask_rows, p.mask_row}, {p.axis, p.mask_col}}))
    return "the mask is too small";
  return nullptr;
}

bool in_place(const void* problem, int operand) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return operand == kSoftmaxX && p.x_outer == p.y_outer && p.x_axis == p.y_axis;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return 5.0 * static_cast<double>(p.outer) * static_cast<double>(p.axis) * static_cast<double>(p.inner);
}

constexpr KernelEntry kKernels[] = {ZOI_SOFTMAX_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kSoftmax = {
    "softmax",
    kOperands,
    kSoftmaxOperands,
    kSoftmaxProblemFields,
    std::size(kSoftmaxProblemFields),
    sizeof(SoftmaxProblem),
    check,
    in_place,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
