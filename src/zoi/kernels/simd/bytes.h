// Copies of a run of bytes. Include it after the ISA's header. Short runs take two overlapping moves, so that there is
// neither a loop nor a mask; x and y must not overlap.
#pragma once

namespace zoi::ZOI_ISA {

ZOI_INLINE V load_bytes(const char* p) { return load(reinterpret_cast<const float*>(p)); }
ZOI_INLINE void store_bytes(char* p, V v) { store(reinterpret_cast<float*>(p), v); }

template <class Word>
ZOI_INLINE void copy_ends(char* y, const char* x, int64_t n) {  // sizeof(Word) <= n <= 2 * sizeof(Word)
  Word low, high;
  __builtin_memcpy(&low, x, sizeof(Word));
  __builtin_memcpy(&high, x + n - sizeof(Word), sizeof(Word));
  __builtin_memcpy(y, &low, sizeof(Word));
  __builtin_memcpy(y + n - sizeof(Word), &high, sizeof(Word));
}

ZOI_INLINE void copy_bytes(char* y, const char* x, int64_t n) {
  constexpr int64_t kBytes = kWidth * 4;
  if (n >= kBytes) {
    int64_t i = 0;
    for (; i + 4 * kBytes <= n; i += 4 * kBytes) {
      V a = load_bytes(x + i), b = load_bytes(x + i + kBytes);
      V c = load_bytes(x + i + 2 * kBytes), d = load_bytes(x + i + 3 * kBytes);
      store_bytes(y + i, a), store_bytes(y + i + kBytes, b);
      store_bytes(y + i + 2 * kBytes, c), store_bytes(y + i + 3 * kBytes, d);
    }
    for (; i + kBytes <= n; i += kBytes) store_bytes(y + i, load_bytes(x + i));
    if (i < n) store_bytes(y + n - kBytes, load_bytes(x + n - kBytes));
  } else if (kBytes > 32 && n >= 32) {
    copy_ends<__m256i_u>(y, x, n);
  } else if (n >= 16) {
    copy_ends<__m128i_u>(y, x, n);
  } else if (n >= 8) {
    copy_ends<uint64_t>(y, x, n);
  } else if (n >= 4) {
    copy_ends<uint32_t>(y, x, n);
  } else if (n >= 2) {
    copy_ends<uint16_t>(y, x, n);
  } else if (n == 1) {
    *y = *x;
  }
}

}  // namespace zoi::ZOI_ISA
