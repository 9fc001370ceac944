#include "../simd/avx2.h"

#include "../simd/math.h"
#include "../simd/tile.h"
#include "simd.h"

namespace zoi {
namespace avx2 {

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

}  // namespace avx2

extern const Kernel gemm_f32_avx2_row = {
    .name = "gemm_f32_avx2_row",
    .arch = Arch::avx2,
    .run = avx2::run_row,
    .supports = avx2::supports_row,
    .slices = avx2::slices_row,
    .scratch = nullptr,
    .packed_bytes = avx2::packed_bytes,
    .pack = avx2::pack_row,
    .cost = avx2::cost_row,
    .exact = false,
};

extern const Kernel gemm_f32_avx2 = {
    .name = "gemm_f32_avx2",
    .arch = Arch::avx2,
    .run = avx2::run,
    .supports = avx2::supports,
    .slices = avx2::slices,
    .scratch = nullptr,
    .packed_bytes = avx2::packed_bytes,
    .pack = avx2::pack,
    .cost = avx2::cost,
    .exact = false,
};

}  // namespace zoi
