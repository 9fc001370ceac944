#include "../simd/avx512.h"
#include "../simd/math.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel depthwise_f32_avx512 = avx512::record("depthwise_f32_avx512", Arch::avx512);
}  // namespace zoi
