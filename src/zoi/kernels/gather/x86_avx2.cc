#include "../simd/avx2.h"
#include "../simd/bytes.h"
#include "simd.h"

namespace zoi {
extern constinit const Kernel gather_avx2 = avx2::record("gather_avx2", Arch::avx2);
}  // namespace zoi
