#include <iterator>

#include "../check.h"
#include "norm.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {
    {"x", Role::in, false},   {"residual", Role::in, true}, {"scale", Role::in, true},
    {"bias", Role::in, true}, {"y", Role::out, false},      {"sum", Role::out, true},
};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  if (!sizes_at_least(0, {p.rows, p.cols})) return "a dimension is out of range";
  if (!work_is_bounded({p.rows, p.cols})) return "too much work";
  if (p.rows > 1 && (p.y_row == 0 || (extents[kNormSum].present && p.s_row == 0))) return "an output overlaps itself";
  if (!fits(extents[kNormX], 4, {{p.rows, p.x_row}, {p.cols, 1}})) return "x is too small";
  if (!fits_optional(extents[kNormResidual], 4, {{p.rows, p.r_row}, {p.cols, 1}})) return "residual is too small";
  if (!fits_optional(extents[kNormScale], 4, {{p.cols, 1}})) return "scale is too small";
  if (!fits_optional(extents[kNormBias], 4, {{p.cols, 1}})) return "bias is too small";
  if (!fits(extents[kNormY], 4, {{p.rows, p.y_row}, {p.cols, 1}})) return "y is too small";
  if (!fits_optional(extents[kNormSum], 4, {{p.rows, p.s_row}, {p.cols, 1}})) return "sum is too small";
  return nullptr;
}

// Either output may be: an element of x and residual is read before y and sum of the same place are written.
bool in_place(const void* problem, int operand) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  const int64_t row = operand == kNormX ? p.x_row : p.r_row;
  return (operand == kNormX || operand == kNormResidual) && p.y_row == row && (p.s_row == row || p.s_row == 0);
}

double flops(const void* problem) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  return 8.0 * static_cast<double>(p.rows) * static_cast<double>(p.cols);
}

constexpr KernelEntry kKernels[] = {ZOI_NORM_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kNorm = {
    "norm", kOperands, kNormOperands, kNormProblemFields, std::size(kNormProblemFields), sizeof(NormProblem),
    check,  in_place,  flops,         kKernels,           std::size(kKernels),
};

}  // namespace zoi
