#include "../simd/avx512.h"

#include "../simd/math.h"
#include "../simd/tile.h"
#include "simd.h"

namespace zoi {
namespace avx512 {

static const ConvProblem& of(const void* problem) { return *static_cast<const ConvProblem*>(problem); }
static void run(const void* args, Lane lane) { conv(*static_cast<const ConvArgs*>(args), lane); }
static bool supports(const void*) { return true; }
static int64_t slices(const void* p) { return conv_slices(of(p)); }
static int64_t scratch(const void* p) { return conv_scratch(of(p), shape_of(of(p))); }
static int64_t packed_bytes(const void* p, int operand) { return operand == kConvW ? conv_packed_bytes(of(p)) : 0; }
static void pack(const void* p, int, const void* plain, void* packed) {
  conv_pack(of(p), static_cast<const float*>(plain), static_cast<float*>(packed));
}
static double cost(const void* p) { return conv_cost(of(p)); }

}  // namespace avx512

extern const Kernel conv_f32_avx512 = {
    .name = "conv_f32_avx512", .arch = Arch::avx512, .run = avx512::run, .supports = avx512::supports,
    .slices = avx512::slices, .scratch = avx512::scratch, .packed_bytes = avx512::packed_bytes, .pack = avx512::pack,
    .cost = avx512::cost, .exact = false,
};

}  // namespace zoi
