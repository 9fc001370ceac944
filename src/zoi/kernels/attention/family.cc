#include <iterator>

#include "../check.h"
#include "attention.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"q", Role::in, false},
                                 {"k", Role::in, false},
                                 {"v", Role::in, false},
                                 {"mask", Role::in, true},
                                 {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  if (!sizes_at_least(0, {p.batch0, p.batch1, p.m, p.dv})) return "a dimension is out of range";
  if (!sizes_at_least(1, {p.n, p.d})) return "n and d must be positive";
  if (p.d + p.dv > kMaxSize || !work_is_bounded({p.batch0, p.batch1, p.m, p.n, p.d + p.dv})) return "too much work";
  const auto inside = [&](int operand, int64_t batch0, int64_t batch1, Dim row, Dim col) {
    return fits(extents[operand], 4, {{p.batch0, batch0}, {p.batch1, batch1}, row, col});
  };
  if (!inside(kAttentionQ, p.q_batch0, p.q_batch1, {p.m, p.q_row}, {p.d, 1})) return "q is too small";
  if (!inside(kAttentionK, p.k_batch0, p.k_batch1, {p.n, p.k_row}, {p.d, 1})) return "k is too small";
  if (!inside(kAttentionV, p.v_batch0, p.v_batch1, {p.n, p.v_row}, {p.dv, 1})) return "v is too small";
  if (!inside(kAttentionY, p.y_batch0, p.y_batch1, {p.m, p.y_row}, {p.dv, 1})) return "y is too small";
  if (extents[kAttentionMask].present &&
      !inside(kAttentionMask, p.mask_batch0, p.mask_batch1, {p.m, p.mask_row}, {p.n, p.mask_col}))
    return "the mask is too small";
  return nullptr;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  return 2.0 * static_cast<double>(p.batch0 * p.batch1) * static_cast<double>(p.m) * static_cast<double>(p.n) *
         static_cast<double>(p.d + p.dv);
}

constexpr KernelEntry kKernels[] = {ZOI_ATTENTION_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kAttention = {
    "attention",
    kOperands,
    kAttentionOperands,
    kAttentionProblemFields,
    std::size(kAttentionProblemFields),
    sizeof(AttentionProblem),
    check,
    nullptr,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
