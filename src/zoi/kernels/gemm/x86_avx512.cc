#include "../simd/avx512.h"

#include "../simd/math.h"
#include "../simd/tile.h"
#include "simd.h"

namespace zoi {
namespace avx512 {

static const GemmProblem& of(const void* problem) { return *static_cast<const GemmProblem*>(problem); }
static void run(const void* args, Lane lane) { gemm(*static_cast<const GemmArgs*>(args), lane); }
static bool supports(const void*) { return true; }
static int64_t slices(const void* p) { return gemm_slices(of(p)); }
static int64_t packed_bytes(const void* p, int operand) {
  return operand == kGemmB ? packed_floats(of(p).k, of(p).n) * 4 : 0;
}
static void pack(const void* p, int operand, const void* plain, void* packed) {
  gemm_pack(of(p), operand, static_cast<const float*>(plain), static_cast<float*>(packed));
}
static double cost(const void* p) { return gemm_cost(of(p)); }

static void run_row(const void* args, Lane lane) { gemm_row(*static_cast<const GemmArgs*>(args), lane); }
static bool supports_row(const void* p) { return of(p).m == 1; }
static int64_t slices_row(const void* p) { return row_groups(of(p)); }
static void pack_row(const void* p, int, const void* plain, void* packed) {
  gemm_row_pack(of(p), static_cast<const float*>(plain), static_cast<float*>(packed));
}
static double cost_row(const void* p) { return gemm_row_cost(of(p)); }

}  // namespace avx512

extern const Kernel gemm_f32_avx512_row = {
    .name = "gemm_f32_avx512_row",
    .arch = Arch::avx512,
    .run = avx512::run_row,
    .supports = avx512::supports_row,
    .slices = avx512::slices_row,
    .scratch = nullptr,
    .packed_bytes = avx512::packed_bytes,
    .pack = avx512::pack_row,
    .cost = avx512::cost_row,
    .exact = false,
};

extern const Kernel gemm_f32_avx512 = {
    .name = "gemm_f32_avx512",
    .arch = Arch::avx512,
    .run = avx512::run,
    .supports = avx512::supports,
    .slices = avx512::slices,
    .scratch = nullptr,
    .packed_bytes = avx512::packed_bytes,
    .pack = avx512::pack,
    .cost = avx512::cost,
    .exact = false,
};

}  // namespace zoi
