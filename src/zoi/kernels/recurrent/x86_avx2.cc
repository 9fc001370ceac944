#include "../simd/avx2.h"
#include "../simd/math.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel recurrent_f32_avx2 = avx2::record("recurrent_f32_avx2", Arch::avx2);
}  // namespace zoi
