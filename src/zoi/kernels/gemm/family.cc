#include <iterator>

#include "../check.h"
#include "gemm.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"a", Role::in, false},
                                 {"b", Role::weight, false},
                                 {"bias", Role::weight, true},
                                 {"residual", Role::in, true},
                                 {"c", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const GemmProblem*>(problem);
  if (!sizes_at_least(0, {p.m, p.n, p.k})) return "a dimension is out of range";
  if (!work_is_bounded({p.m, p.n, p.k})) return "too much work";
  if (p.act < 0 || p.act >= kActCount) return "unknown activation";
  if (p.m > 1 && p.c_row < p.n) return "the rows of c overlap";
  if (!fits(extents[kGemmA], 4, {{p.m, p.a_row}, {p.k, 1}})) return "a is too small";
  if (!fits(extents[kGemmB], 4, {{p.k, p.n}, {p.n, 1}})) return "b is too small";
  if (!fits_optional(extents[kGemmBias], 4, {{p.n, 1}})) return "bias is too small";
  if (!fits_optional(extents[kGemmResidual], 4, {{p.m, p.r_row}, {p.n, 1}})) return "residual is too small";
  if (!fits(extents[kGemmC], 4, {{p.m, p.c_row}, {p.n, 1}})) return "c is too small";
  return nullptr;
}

// Each element of the residual is read just before its element of c is written, unless it is added in a second pass.
bool in_place(const void* problem, int operand) {
  const auto& p = *static_cast<const GemmProblem*>(problem);
  return operand == kGemmResidual && p.r_row == p.c_row && !p.residual_after;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const GemmProblem*>(problem);
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

constexpr KernelEntry kKernels[] = {ZOI_GEMM_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kGemm = {
    "gemm", kOperands, kGemmOperands, kGemmProblemFields, std::size(kGemmProblemFields), sizeof(GemmProblem),
    check,  in_place,  flops,         kKernels,           std::size(kKernels),
};

}  // namespace zoi
