#include "../simd/avx2.h"
#include "../simd/bytes.h"

namespace zoi::avx2 {

ZOI_INLINE V permute2(V a, VI index, V b) {
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, index), _mm256_permutevar8x32_ps(b, index),
                          as_float(shift_left<28>(index)));  // bit 3 as the sign
}

// 8 x 8: pairs of rows, quads of rows, then 128-bit lanes.
ZOI_INLINE void transpose(V (&v)[8]) {
  V a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

}  // namespace zoi::avx2

#include "simd.h"

namespace zoi {
extern constinit const Kernel copy_avx2 = avx2::record("copy_avx2", Arch::avx2);
}  // namespace zoi
