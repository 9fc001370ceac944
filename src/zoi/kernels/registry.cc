#include "registry.h"

namespace zoi {

// Weak so that a build may leave a family out.
[[gnu::weak]] extern const Family kGemm, kMatmul, kConv, kDepthwise, kPool, kPointwise, kSoftmax, kNorm, kReduce,
    kRecurrent, kCopy, kFill, kGather, kResize, kAttention;

namespace {
constexpr const Family* kFamilies[] = {&kGemm,      &kMatmul,  &kConv,   &kDepthwise, &kPool,
                                       &kPointwise, &kSoftmax, &kNorm,   &kReduce,    &kRecurrent,
                                       &kCopy,      &kFill,    &kGather, &kResize,    &kAttention};
constexpr const char* kArchNames[] = {"generic", "avx2", "avx512"};
}  // namespace

std::span<const Family* const> families() { return kFamilies; }

const Family* find_family(std::string_view name) {
  for (const Family* family : kFamilies)
    if (family && name == family->name) return family;
  return nullptr;
}

const char* arch_name(Arch arch) { return kArchNames[static_cast<int>(arch)]; }

Arch parse_arch(std::string_view name) {
  for (int i = 0; i < static_cast<int>(Arch::kCount); ++i)
    if (name == kArchNames[i]) return static_cast<Arch>(i);
  return Arch::kCount;
}

}  // namespace zoi
