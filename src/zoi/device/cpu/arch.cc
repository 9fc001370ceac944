#include "arch.h"

namespace zoi {

#if defined(__x86_64__)
namespace {
// __builtin_cpu_supports also asks XGETBV whether the operating system saves the registers.
#define ZOI_HAS(name) {#name, __builtin_cpu_supports(#name) != 0}
}  // namespace

std::span<const Feature> cpu_features() {
  static const Feature features[] = {ZOI_HAS(avx2),     ZOI_HAS(fma),        ZOI_HAS(bmi2),
                                     ZOI_HAS(avx512f),  ZOI_HAS(avx512bw),   ZOI_HAS(avx512dq),
                                     ZOI_HAS(avx512vl), ZOI_HAS(avx512vnni), ZOI_HAS(avx512bf16)};
  return features;
}

Arch host_arch() {
  const auto has = [](std::initializer_list<const char*> names) {
    for (const char* name : names)
      for (const Feature& feature : cpu_features())
        if (std::string(feature.name) == name && !feature.present) return false;
    return true;
  };
  if (!has({"avx2", "fma", "bmi2"})) return Arch::generic;
  return has({"avx512f", "avx512bw", "avx512dq", "avx512vl"}) ? Arch::avx512 : Arch::avx2;
}
#else
std::span<const Feature> cpu_features() { return {}; }
Arch host_arch() { return Arch::generic; }
#endif

}  // namespace zoi
