#include <iterator>

#include "../check.h"
#include "matmul.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {
    {"a", Role::in, false}, {"b", Role::in, false}, {"add", Role::in, true}, {"c", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const MatmulProblem*>(problem);
  if (!sizes_at_least(0, {p.batch0, p.batch1, p.m, p.n, p.k})) return "a dimension is out of range";
  if (!work_is_bounded({p.k, p.n}) || !work_is_bounded({p.batch0, p.batch1, p.m, p.n, p.k})) return "too much work";
  if (p.act < 0 || p.act >= kActCount) return "unknown activation";
  const auto inside = [&](int operand, int64_t batch0, int64_t batch1, Dim row, Dim col) {
    return fits(extents[operand], 4, {{p.batch0, batch0}, {p.batch1, batch1}, row, col});
  };
  if (!inside(kMatmulA, p.a_batch0, p.a_batch1, {p.m, p.a_row}, {p.k, p.a_col})) return "a is too small";
  if (!inside(kMatmulB, p.b_batch0, p.b_batch1, {p.k, p.b_row}, {p.n, p.b_col})) return "b is too small";
  if (!inside(kMatmulC, p.c_batch0, p.c_batch1, {p.m, p.c_row}, {p.n, 1})) return "c is too small";
  if (extents[kMatmulAdd].present && !inside(kMatmulAdd, p.d_batch0, p.d_batch1, {p.m, p.d_row}, {p.n, p.d_col}))
    return "add is too small";
  return nullptr;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const MatmulProblem*>(problem);
  return 2.0 * static_cast<double>(p.batch0 * p.batch1) * static_cast<double>(p.m) * static_cast<double>(p.n) *
         static_cast<double>(p.k);
}

constexpr KernelEntry kKernels[] = {ZOI_MATMUL_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kMatmul = {
    "matmul",
    kOperands,
    kMatmulOperands,
    kMatmulProblemFields,
    std::size(kMatmulProblemFields),
    sizeof(MatmulProblem),
    check,
    nullptr,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
