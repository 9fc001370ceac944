#include "select.h"

#include "../device/cpu/arch.h"
#include "../kernels/registry.h"

namespace zoi {

Arch runnable_arch(const std::string& name) {
  const Arch best = host_arch();
  if (name == "auto") return best;
  const Arch arch = parse_arch(name);
  if (arch == Arch::kCount) throw Error("unknown architecture '" + name + "'");
  if (arch > best) throw Error("this machine cannot run '" + name + "'; its best is '" + arch_name(best) + "'");
  return arch;
}

Choice select(const Step& step, Arch arch, const std::string& pick) {
  const Family& family = *step.family;
  const void* problem = step.problem.data();
  Choice best;
  std::string passed_over;
  for (int64_t i = 0; i < family.kernel_count; ++i) {
    const KernelEntry& entry = family.kernels[i];
    if (!pick.empty() && pick != entry.name) continue;
    std::string reason;
    if (!entry.kernel)
      reason = "not in this build";
    else if (entry.kernel->arch > arch)
      reason = std::string("needs ") + arch_name(entry.kernel->arch);
    else if (!entry.kernel->supports(problem))
      reason = "does not support this problem";
    else if (best.kernel && entry.kernel->arch != best.kernel->arch)
      break;
    else if (best.kernel && entry.kernel->cost(problem) >= best.kernel->cost(problem))
      reason = "is expected to take longer";
    else {
      if (best.kernel) passed_over += std::string(best.kernel->name) + ": is expected to take longer; ";
      best.kernel = entry.kernel;
      continue;
    }
    passed_over += std::string(entry.name) + ": " + reason + "; ";
  }
  if (best.kernel) {
    best.why = pick.empty() ? passed_over + "the best that supports it" : "picked";
    return best;
  }
  if (!pick.empty() && passed_over.empty())
    passed_over = "family '" + std::string(family.name) + "' has no such kernel";
  throw Error("step '" + step.name + "': no kernel for it" + (pick.empty() ? "" : " named '" + pick + "'") + ": " +
              passed_over);
}

}  // namespace zoi
