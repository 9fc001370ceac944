// What this processor and this build can run.
#pragma once

#include <span>
#include <string>

#include "../../kernels/kernel.h"

namespace zoi {

/// The best architecture that the processor and the operating system support.
Arch host_arch();
struct Feature {
  const char* name;
  bool present;
};
/// CPUID features that matter to the kernels.
std::span<const Feature> cpu_features();

}  // namespace zoi
