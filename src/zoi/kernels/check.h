// Overflow-safe tests that a strided operand stays inside its memory; used by every family's `check`.
// Included only by translation units built without ISA flags.
#pragma once

#include <initializer_list>

#include "kernel.h"

namespace zoi {

struct Dim {
  int64_t size;    // elements; 0 makes the operand empty
  int64_t stride;  // elements between neighbours
};

inline constexpr int64_t kMaxSize = int64_t{1} << 31;    // of a dimension
inline constexpr int64_t kMaxStride = int64_t{1} << 40;  // in elements

/// Whether every size of `sizes` is in [low, kMaxSize].
inline bool sizes_at_least(int64_t low, std::initializer_list<int64_t> sizes) {
  for (int64_t size : sizes)
    if (size < low || size > kMaxSize) return false;
  return true;
}
/// Whether the product of `counts`, each at least 0, is at most kMaxWork.
inline constexpr int64_t kMaxWork = int64_t{1} << 40;
inline bool work_is_bounded(std::initializer_list<int64_t> counts) {
  int64_t work = 1;
  for (int64_t count : counts)
    if (count < 0 || __builtin_mul_overflow(work, count, &work)) return false;
  return work <= kMaxWork;
}

/// Whether elements of `elem` bytes at every combination of `dims` are aligned and lie inside `extent`.
template <class Dims>
bool fits(const Extent& extent, int64_t elem, const Dims& dims) {
  if (!extent.present || extent.before % elem != 0) return false;
  int64_t low = 0, high = 0;
  bool empty = false;
  for (const Dim& dim : dims) {
    if (dim.size < 0 || dim.size > kMaxSize || dim.stride > kMaxStride || dim.stride < -kMaxStride) return false;
    if (dim.size == 0) {
      empty = true;
      continue;
    }
    int64_t reach;
    if (__builtin_mul_overflow(dim.size - 1, dim.stride, &reach)) return false;
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) return false;
  }
  if (empty) return true;
  int64_t low_bytes, high_bytes;
  if (__builtin_add_overflow(high, 1, &high) || __builtin_mul_overflow(low, elem, &low_bytes) ||
      __builtin_mul_overflow(high, elem, &high_bytes))
    return false;
  return low_bytes >= -extent.before && high_bytes <= extent.bytes;
}
inline bool fits(const Extent& extent, int64_t elem, std::initializer_list<Dim> dims) {
  return fits<std::initializer_list<Dim>>(extent, elem, dims);
}
/// The same for an optional operand, which may be missing.
inline bool fits_optional(const Extent& extent, int64_t elem, std::initializer_list<Dim> dims) {
  return !extent.present || fits(extent, elem, dims);
}

}  // namespace zoi
