#include "../simd/avx512.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel resize_f32_avx512 = avx512::record("resize_f32_avx512", Arch::avx512);
}  // namespace zoi
