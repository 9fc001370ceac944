// The float vector of AVX-512 (16 lanes) under the names that every simd.h uses. See simd/vec.h for their meaning.
#pragma once

#include <immintrin.h>

#include "../activation.h"

#define ZOI_ISA avx512
#define ZOI_INLINE [[gnu::always_inline]] static inline

namespace zoi::avx512 {

using V = __m512;
using VI = __m512i;
using M = __mmask16;
inline constexpr int kWidth = 16;
inline constexpr bool kLdexpIsCheap = true;
inline constexpr int kRegisters = 32;

ZOI_INLINE M first(int n) { return static_cast<M>((1u << n) - 1u); }  // 0 <= n <= 16
ZOI_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
ZOI_INLINE V load(const float* p, M m) { return _mm512_maskz_loadu_ps(m, p); }
ZOI_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
ZOI_INLINE void store(float* p, V v, M m) { _mm512_mask_storeu_ps(p, m, v); }
ZOI_INLINE void store_first(float* p, V v, int n) { store(p, v, first(n)); }
ZOI_INLINE V set1(float x) { return _mm512_set1_ps(x); }
ZOI_INLINE V broadcast(const float* p) { return _mm512_set1_ps(*p); }
ZOI_INLINE V zero() { return _mm512_setzero_ps(); }
ZOI_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
ZOI_INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
ZOI_INLINE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
ZOI_INLINE V div(V a, V b) { return _mm512_div_ps(a, b); }
ZOI_INLINE V sqrt(V a) { return _mm512_sqrt_ps(a); }
ZOI_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
ZOI_INLINE V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
ZOI_INLINE V max_second(V a, V b) { return _mm512_max_ps(a, b); }
ZOI_INLINE V min_second(V a, V b) { return _mm512_min_ps(a, b); }
ZOI_INLINE V round(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
ZOI_INLINE V floor(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
ZOI_INLINE V ceil(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
ZOI_INLINE V abs(V a) { return _mm512_abs_ps(a); }
ZOI_INLINE V bit_and(V a, V b) { return _mm512_and_ps(a, b); }
ZOI_INLINE V bit_or(V a, V b) { return _mm512_or_ps(a, b); }
ZOI_INLINE V bit_xor(V a, V b) { return _mm512_xor_ps(a, b); }
ZOI_INLINE M less(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
ZOI_INLINE M less_equal(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
ZOI_INLINE M equal(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
ZOI_INLINE M unordered(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
ZOI_INLINE V select(M m, V yes, V no) { return _mm512_mask_blend_ps(m, no, yes); }
ZOI_INLINE bool any(M m) { return m != 0; }
ZOI_INLINE M both(M a, M b) { return static_cast<M>(a & b); }
ZOI_INLINE M either(M a, M b) { return static_cast<M>(a | b); }
ZOI_INLINE V ldexp(V a, V n) { return _mm512_scalef_ps(a, n); }
ZOI_INLINE VI to_int(V a) { return _mm512_cvtps_epi32(a); }
ZOI_INLINE V to_float(VI a) { return _mm512_cvtepi32_ps(a); }
ZOI_INLINE V as_float(VI a) { return _mm512_castsi512_ps(a); }
ZOI_INLINE VI as_int(V a) { return _mm512_castps_si512(a); }
ZOI_INLINE VI iset1(int x) { return _mm512_set1_epi32(x); }
ZOI_INLINE VI iadd(VI a, VI b) { return _mm512_add_epi32(a, b); }
ZOI_INLINE VI isub(VI a, VI b) { return _mm512_sub_epi32(a, b); }
ZOI_INLINE VI iand(VI a, VI b) { return _mm512_and_si512(a, b); }
ZOI_INLINE VI ior(VI a, VI b) { return _mm512_or_si512(a, b); }
template <int n>
ZOI_INLINE VI shift_left(VI a) {
  return _mm512_slli_epi32(a, n);
}
template <int n>
ZOI_INLINE VI shift_right(VI a) {
  return _mm512_srai_epi32(a, n);
}
ZOI_INLINE float reduce_add(V a) { return _mm512_reduce_add_ps(a); }
ZOI_INLINE float reduce_max(V a) { return _mm512_reduce_max_ps(a); }
ZOI_INLINE float reduce_min(V a) { return _mm512_reduce_min_ps(a); }

}  // namespace zoi::avx512
