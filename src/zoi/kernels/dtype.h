// Sizes and conversions of element types. Included only by translation units built without ISA flags.
#pragma once

#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <type_traits>

#include "kernel.h"

namespace zoi {

/// 0 if `dtype` is none.
inline int64_t dtype_bytes(int64_t dtype) {
  constexpr int64_t kBytes[] = {4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};
  static_assert(std::size(kBytes) == kDTypeCount);
  return dtype >= 0 && dtype < kDTypeCount ? kBytes[dtype] : 0;
}

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;  // 0 is false
};

inline float to_float(Half h) {
  uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16, magnitude = h.bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;  // moves the exponent's bias; right for denormals
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}
inline float to_float(BFloat b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }

/// To nearest, ties to even; too large becomes infinite.
inline Half to_half(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000) {  // a denormal half: adding 0.5 leaves its bits, rounded, at the end of the float
    uint32_t rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f);
    return {static_cast<uint16_t>(sign | (rounded - 0x3f000000))};
  }
  return {static_cast<uint16_t>(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13)};
}
inline BFloat to_bfloat(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// An element of a tensor as a value of `To`: float, double or an integer. Floats become integers by truncation,
/// out of range the nearest integer there is, NaN 0; integers wrap around.
template <class To, class From>
inline To convert(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>) {
    return convert<To>(to_float(x));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<To>(x.bits != 0);
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat>) {
    return to_bfloat(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (x != x) return 0;
    constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double high = static_cast<double>(std::numeric_limits<To>::max());
    double value = static_cast<double>(x);
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
struct TypeTag {
  using type = T;
};
/// Calls `body(TypeTag<T>{})` with the C++ type of `dtype`, which must be one.
template <class Body>
inline void with_dtype(int64_t dtype, Body body) {
  switch (dtype) {
    case kF32:
      return body(TypeTag<float>{});
    case kF64:
      return body(TypeTag<double>{});
    case kF16:
      return body(TypeTag<Half>{});
    case kBF16:
      return body(TypeTag<BFloat>{});
    case kI8:
      return body(TypeTag<int8_t>{});
    case kU8:
      return body(TypeTag<uint8_t>{});
    case kI16:
      return body(TypeTag<int16_t>{});
    case kU16:
      return body(TypeTag<uint16_t>{});
    case kI32:
      return body(TypeTag<int32_t>{});
    case kU32:
      return body(TypeTag<uint32_t>{});
    case kI64:
      return body(TypeTag<int64_t>{});
    case kU64:
      return body(TypeTag<uint64_t>{});
    default:
      return body(TypeTag<Bool>{});
  }
}

}  // namespace zoi
