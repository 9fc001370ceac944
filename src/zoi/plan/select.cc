#include "select.h"

#include "../kernels/registry.h"

namespace zoi {

Choice select(const Step& step, Arch arch, const std::string& pick) {
  const Family& family = *step.family;
  std::string passed_over;
  for (int64_t i = 0; i < family.kernel_count; ++i) {
    const KernelEntry& entry = family.kernels[i];
    if (!pick.empty() && pick != entry.name) continue;
    std::string reason;
    if (!entry.kernel)
      reason = "not in this build";
    else if (entry.kernel->arch > arch)
      reason = std::string("needs ") + arch_name(entry.kernel->arch);
    else if (!entry.kernel->supports(step.problem.data()))
      reason = "does not support this problem";
    else
      return {entry.kernel, pick.empty() ? passed_over + "first that supports it" : "picked"};
    passed_over += std::string(entry.name) + ": " + reason + "; ";
  }
  if (!pick.empty() && passed_over.empty()) passed_over = "family '" + std::string(family.name) + "' has no such kernel";
  throw Error("step '" + step.name + "': no kernel for it" + (pick.empty() ? "" : " named '" + pick + "'") + ": " +
              passed_over);
}

}  // namespace zoi
