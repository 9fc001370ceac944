#include "../simd/avx512.h"
#include "../simd/bytes.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel fill_avx512 = avx512::record("fill_avx512", Arch::avx512);
}  // namespace zoi
