#include "../simd/avx512.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel pool_f32_avx512 = avx512::record("pool_f32_avx512", Arch::avx512);
}  // namespace zoi
