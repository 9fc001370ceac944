// Which kernel runs a problem: a pure function of its arguments.
#pragma once

#include <string>

#include "program.h"

namespace zoi {

/// The architecture of this name, "auto" being the best of this machine. Throws Error if it is none that can run here.
Arch runnable_arch(const std::string& name);

struct Choice {
  const Kernel* kernel = nullptr;
  std::string why;
};

/// The first kernel of the family's table that `arch` can run and that supports the problem, or a later one of the same
/// architecture that is expected to cost less; or the one named by `pick`. Throws Error if there is none, or if `pick`
/// is unknown, not in this build, or does not support it.
Choice select(const Step& step, Arch arch, const std::string& pick = {});

}  // namespace zoi
