#include "../simd/avx512.h"
#include "../simd/bytes.h"

namespace zoi::avx512 {

ZOI_INLINE V permute2(V a, VI index, V b) { return _mm512_permutex2var_ps(a, index, b); }

// 16 x 16: pairs of rows, quads of rows, then 128-bit lanes twice.
ZOI_INLINE void transpose(V (&v)[16]) {
  V a[16], b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
    a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    v[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
    v[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
    v[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xdd);
    v[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xdd);
  }
}

}  // namespace zoi::avx512

#include "simd.h"

namespace zoi {
extern constinit const Kernel copy_avx512 = avx512::record("copy_avx512", Arch::avx512);
}  // namespace zoi
