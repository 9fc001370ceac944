#include "../simd/avx512.h"

#include "../simd/math.h"
#include "../simd/tile.h"
#include "simd.h"

namespace zoi {
namespace avx512 {

static const MatmulProblem& of(const void* problem) { return *static_cast<const MatmulProblem*>(problem); }
static void run(const void* args, Lane lane) { matmul(*static_cast<const MatmulArgs*>(args), lane); }
static bool supports(const void* p) { return of(p).d_col == 0 || of(p).d_col == 1; }
static int64_t slices(const void* p) { return matmul_slices(of(p)); }
static int64_t scratch(const void* p) { return matmul_scratch(of(p)); }
static double cost(const void* p) { return matmul_cost(of(p)); }

}  // namespace avx512

extern const Kernel matmul_f32_avx512 = {
    .name = "matmul_f32_avx512",
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
