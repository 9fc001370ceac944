#include "../simd/avx512.h"
#include "../simd/math.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel softmax_f32_avx512 = avx512::record("softmax_f32_avx512", Arch::avx512);
}  // namespace zoi
