#include "../simd/avx2.h"

#include "../simd/math.h"
#include "../simd/tile.h"
#include "simd.h"

namespace zoi {
namespace avx2 {

static const MatmulProblem& of(const void* problem) { return *static_cast<const MatmulProblem*>(problem); }
static void run(const void* args, Lane lane) { matmul(*static_cast<const MatmulArgs*>(args), lane); }
static bool supports(const void* p) { return of(p).d_col == 0 || of(p).d_col == 1; }
static int64_t slices(const void* p) { return matmul_slices(of(p)); }
static int64_t scratch(const void* p) { return matmul_scratch(of(p)); }
static double cost(const void* p) { return matmul_cost(of(p)); }

}  // namespace avx2

extern const Kernel matmul_f32_avx2 = {
    .name = "matmul_f32_avx2",
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
