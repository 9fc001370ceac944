// The float vector of AVX2 and FMA (8 lanes) under the names that every simd.h uses. See simd/vec.h for their meaning.
#pragma once

#include <immintrin.h>

#include "../activation.h"

#define ZOI_ISA avx2
#define ZOI_INLINE [[gnu::always_inline]] static inline

namespace zoi::avx2 {

using V = __m256;
using VI = __m256i;
struct M {
  __m256 v;  // a lane is chosen if its sign bit is set
};
inline constexpr int kWidth = 8;
inline constexpr bool kLdexpIsCheap = false;
inline constexpr int kRegisters = 16;

ZOI_INLINE M first(int n) {  // 0 <= n <= 8
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)))};
}
ZOI_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
ZOI_INLINE V load(const float* p, M m) { return _mm256_maskload_ps(p, _mm256_castps_si256(m.v)); }
ZOI_INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
ZOI_INLINE void store(float* p, V v, M m) { _mm256_maskstore_ps(p, _mm256_castps_si256(m.v), v); }
/// The first n lanes, 0 < n < kWidth, without a masked store, which is microcode on AMD.
ZOI_INLINE void store_first(float* p, V v, int n) {
  __m128 part = _mm256_castps256_ps128(v);
  if (n & 4) {
    _mm_storeu_ps(p, part);
    part = _mm256_extractf128_ps(v, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
    part = _mm_movehl_ps(part, part);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, part);
}
ZOI_INLINE V set1(float x) { return _mm256_set1_ps(x); }
ZOI_INLINE V broadcast(const float* p) { return _mm256_broadcast_ss(p); }
ZOI_INLINE V zero() { return _mm256_setzero_ps(); }
ZOI_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
ZOI_INLINE V sub(V a, V b) { return _mm256_sub_ps(a, b); }
ZOI_INLINE V mul(V a, V b) { return _mm256_mul_ps(a, b); }
ZOI_INLINE V div(V a, V b) { return _mm256_div_ps(a, b); }
ZOI_INLINE V sqrt(V a) { return _mm256_sqrt_ps(a); }
ZOI_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
ZOI_INLINE V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
ZOI_INLINE V max_second(V a, V b) { return _mm256_max_ps(a, b); }
ZOI_INLINE V min_second(V a, V b) { return _mm256_min_ps(a, b); }
ZOI_INLINE V round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
ZOI_INLINE V floor(V a) { return _mm256_floor_ps(a); }
ZOI_INLINE V ceil(V a) { return _mm256_ceil_ps(a); }
ZOI_INLINE V abs(V a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
ZOI_INLINE V bit_and(V a, V b) { return _mm256_and_ps(a, b); }
ZOI_INLINE V bit_or(V a, V b) { return _mm256_or_ps(a, b); }
ZOI_INLINE V bit_xor(V a, V b) { return _mm256_xor_ps(a, b); }
ZOI_INLINE M less(V a, V b) { return {_mm256_cmp_ps(a, b, _CMP_LT_OQ)}; }
ZOI_INLINE M less_equal(V a, V b) { return {_mm256_cmp_ps(a, b, _CMP_LE_OQ)}; }
ZOI_INLINE M equal(V a, V b) { return {_mm256_cmp_ps(a, b, _CMP_EQ_OQ)}; }
ZOI_INLINE M unordered(V a, V b) { return {_mm256_cmp_ps(a, b, _CMP_UNORD_Q)}; }
ZOI_INLINE V select(M m, V yes, V no) { return _mm256_blendv_ps(no, yes, m.v); }
ZOI_INLINE bool any(M m) { return _mm256_movemask_ps(m.v) != 0; }
ZOI_INLINE M both(M a, M b) { return {_mm256_and_ps(a.v, b.v)}; }
ZOI_INLINE M either(M a, M b) { return {_mm256_or_ps(a.v, b.v)}; }
ZOI_INLINE VI to_int(V a) { return _mm256_cvtps_epi32(a); }
ZOI_INLINE V to_float(VI a) { return _mm256_cvtepi32_ps(a); }
ZOI_INLINE V as_float(VI a) { return _mm256_castsi256_ps(a); }
ZOI_INLINE VI as_int(V a) { return _mm256_castps_si256(a); }
ZOI_INLINE VI iset1(int x) { return _mm256_set1_epi32(x); }
ZOI_INLINE VI iadd(VI a, VI b) { return _mm256_add_epi32(a, b); }
ZOI_INLINE VI isub(VI a, VI b) { return _mm256_sub_epi32(a, b); }
ZOI_INLINE VI iand(VI a, VI b) { return _mm256_and_si256(a, b); }
ZOI_INLINE VI ior(VI a, VI b) { return _mm256_or_si256(a, b); }
template <int n>
ZOI_INLINE VI shift_left(VI a) {
  return _mm256_slli_epi32(a, n);
}
template <int n>
ZOI_INLINE VI shift_right(VI a) {
  return _mm256_srai_epi32(a, n);
}
// In two steps, so that the result may be a denormal number and is rounded once; `a` is normal, or 2^(n/2) would
// carry out of its exponent.
ZOI_INLINE V ldexp(V a, V n) {
  VI whole = to_int(n), half = shift_right<1>(whole);
  V first_half = as_float(iadd(as_int(a), shift_left<23>(half)));
  return mul(first_half, as_float(iadd(shift_left<23>(isub(whole, half)), iset1(0x3f800000))));
}
ZOI_INLINE float reduce_add(V a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
ZOI_INLINE float reduce_max(V a) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}
ZOI_INLINE float reduce_min(V a) {
  __m128 s = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_min_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_min_ss(s, _mm_shuffle_ps(s, s, 1)));
}

}  // namespace zoi::avx2
