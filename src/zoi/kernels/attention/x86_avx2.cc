#include "../simd/avx2.h"

#include "../simd/math.h"
#include "simd.h"

namespace zoi {
namespace avx2 {

static void run(const void* args, Lane lane) { attention(*static_cast<const AttentionArgs*>(args), lane); }
static bool supports(const void* p) { return attention_supports(*static_cast<const AttentionProblem*>(p)); }
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  return p.batch0 * p.batch1 * row_slices(p);
}
static int64_t scratch(const void* p) { return attention_scratch(*static_cast<const AttentionProblem*>(p)); }
static double cost(const void* p) { return attention_cost(*static_cast<const AttentionProblem*>(p)); }

}  // namespace avx2

extern const Kernel attention_f32_avx2 = {
    .name = "attention_f32_avx2",
    .arch = Arch::avx2,
    .run = avx2::run,
    .supports = avx2::supports,
    .slices = avx2::slices,
    .scratch = avx2::scratch,
    .packed_bytes = nullptr,
    .pack = nullptr,
    .cost = avx2::cost,
    .exact = false,
};

}  // namespace zoi
