#include "../simd/avx2.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel pool_f32_avx2 = avx2::record("pool_f32_avx2", Arch::avx2);
}  // namespace zoi
