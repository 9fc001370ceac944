#include <iterator>

#include "../check.h"
#include "recurrent.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false},         {"r", Role::weight, false},
                                 {"r_bias", Role::weight, true}, {"peephole", Role::weight, true},
                                 {"h0", Role::in, true},         {"c0", Role::in, true},
                                 {"seq_lens", Role::in, true},   {"y", Role::out, true},
                                 {"y_h", Role::out, true},       {"y_c", Role::out, true}};

bool known(int64_t act) { return act >= 0 && act < kActCount; }

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  if (p.kind < kLstm || p.kind > kRnn) return "unknown kind";
  if (!sizes_at_least(0, {p.seq, p.batch}) || !sizes_at_least(1, {p.hidden})) return "a dimension is out of range";
  const int64_t gates = recurrent_gates(p);
  if (p.hidden > kMaxSize / gates) return "a dimension is out of range";
  const int64_t width = gates * p.hidden;
  if (!work_is_bounded({p.seq, p.batch, width, p.hidden}) || !work_is_bounded({width, p.hidden}) ||
      !work_is_bounded({p.batch, width}))
    return "too much work";
  if (!known(p.act_f) || !known(p.act_g) || !known(p.act_h)) return "unknown activation";
  if (!(p.clip >= 0)) return "clip must not be negative";
  if (p.kind != kLstm &&
      (extents[kRecurrentPeephole].present || extents[kRecurrentC0].present || extents[kRecurrentYC].present))
    return "only an LSTM has a cell";
  if (!fits(extents[kRecurrentX], 4, {{p.seq, p.x_step}, {p.batch, p.x_batch}, {width, 1}})) return "x is too small";
  if (!fits(extents[kRecurrentR], 4, {{width, p.hidden}, {p.hidden, 1}})) return "r is too small";
  if (!fits_optional(extents[kRecurrentRBias], 4, {{width, 1}})) return "r_bias is too small";
  if (!fits_optional(extents[kRecurrentPeephole], 4, {{3, p.hidden}, {p.hidden, 1}})) return "peephole is too small";
  for (int operand : {kRecurrentH0, kRecurrentC0, kRecurrentYH, kRecurrentYC})
    if (!fits_optional(extents[operand], 4, {{p.batch, p.hidden}, {p.hidden, 1}})) return "a state is too small";
  if (!fits_optional(extents[kRecurrentSeqLens], 4, {{p.batch, 1}})) return "seq_lens is too small";
  if (!extents[kRecurrentY].present) return nullptr;
  if ((p.seq > 1 && p.y_step == 0) || (p.batch > 1 && p.y_batch == 0)) return "the output overlaps itself";
  if (!fits(extents[kRecurrentY], 4, {{p.seq, p.y_step}, {p.batch, p.y_batch}, {p.hidden, 1}})) return "y is too small";
  return nullptr;
}

// A kernel reads the states of some batches before it writes anything of them; so every output may take a state's
// place if there is one batch, no y, or a y that lies as the state does.
bool in_place(const void* problem, int operand) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  if (operand != kRecurrentH0 && operand != kRecurrentC0) return false;
  return p.batch == 1 || p.y_batch == 0 || (p.seq == 1 && p.y_batch == p.hidden);
}

double flops(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  return 2.0 * static_cast<double>(p.seq * p.batch) * static_cast<double>(recurrent_gates(p) * p.hidden * p.hidden);
}

constexpr KernelEntry kKernels[] = {ZOI_RECURRENT_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kRecurrent = {
    "recurrent",
    kOperands,
    kRecurrentOperands,
    kRecurrentProblemFields,
    std::size(kRecurrentProblemFields),
    sizeof(RecurrentProblem),
    check,
    in_place,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
