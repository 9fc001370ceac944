#include "../simd/avx512.h"

#include "../simd/math.h"
#include "simd.h"

namespace zoi {
namespace avx512 {

static void run(const void* args, Lane lane) { attention(*static_cast<const AttentionArgs*>(args), lane); }
static bool supports(const void* p) { return attention_supports(*static_cast<const AttentionProblem*>(p)); }
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  return p.batch0 * p.batch1 * row_slices(p);
}
static int64_t scratch(const void* p) { return attention_scratch(*static_cast<const AttentionProblem*>(p)); }
static double cost(const void* p) { return attention_cost(*static_cast<const AttentionProblem*>(p)); }

}  // namespace avx512

extern const Kernel attention_f32_avx512 = {
    .name = "attention_f32_avx512",
    .arch = Arch::avx512,
    .run = avx512::run,
    .supports = avx512::supports,
    .slices = avx512::slices,
    .scratch = avx512::scratch,
    .packed_bytes = nullptr,
    .pack = nullptr,
    .cost = avx512::cost,
    .exact = false,
};

}  // namespace zoi
