// Fills of any strides: contiguous runs by vectors, of which the last overlaps the one before; anything else one
// element after another.
#pragma once

#include "fill.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kBytes = kWidth * 4;

struct FillLayout {
  int64_t rank;
  int64_t size[kFillDims], y[kFillDims];
};

ZOI_INLINE FillLayout merged(const FillProblem& p) {
  FillLayout dims;
  int64_t n = 0;
  for (int64_t d = 0; d < p.ndim; d++) {
    const int64_t size = p.shape[d], y = p.y_stride[d];
    if (size == 1) continue;
    if (n && dims.y[n - 1] == size * y) {
      dims.size[n - 1] *= size;
      dims.y[n - 1] = y;
    } else {
      dims.size[n] = size;
      dims.y[n] = y;
      n++;
    }
  }
  if (n == 0) {
    dims.size[0] = dims.y[0] = 1;
    n = 1;
  }
  dims.rank = n;
  return dims;
}
ZOI_INLINE int64_t grain(const FillLayout& dims) { return dims.rank == 1 ? 1024 : 1; }

// Any part of the pattern that starts at a multiple of the element is a run of elements.
ZOI_INLINE void fill_run(char* y, const char* pattern, V vector, int64_t n) {
  if (n < kBytes) return copy_bytes(y, pattern, n);
  for (int64_t i = 0; i + kBytes <= n; i += kBytes) store_bytes(y + i, vector);
  store_bytes(y + n - kBytes, vector);
}

template <class T>
ZOI_INLINE void fill_strided(char* y, int64_t bits, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++) reinterpret_cast<T*>(y)[i * step] = static_cast<T>(bits);
}

static void fill_dims(const FillLayout& dims, int64_t elem, int64_t bits, char* y) {
  const int64_t last = dims.rank - 1, n = dims.size[last], step = dims.y[last];
  uint64_t word = static_cast<uint64_t>(bits);
  for (int64_t width = elem * 8; width < 64; width *= 2) word = (word & ((uint64_t{1} << width) - 1)) | word << width;
  alignas(kBytes) uint64_t pattern[kBytes / 8];
  for (uint64_t& part : pattern) part = word;
  const char* bytes = reinterpret_cast<const char*>(pattern);
  const V vector = load_bytes(bytes);
  for (int64_t d = 0; d < last; d++)
    if (dims.size[d] == 0) return;
  int64_t index[kFillDims] = {};
  for (;;) {
    if (step == 1)
      fill_run(y, bytes, vector, n * elem);
    else if (elem == 4)
      fill_strided<uint32_t>(y, bits, step, n);
    else if (elem == 8)
      fill_strided<uint64_t>(y, bits, step, n);
    else if (elem == 2)
      fill_strided<uint16_t>(y, bits, step, n);
    else
      fill_strided<uint8_t>(y, bits, step, n);
    int64_t d = last - 1;
    for (; d >= 0; d--) {
      y += dims.y[d] * elem;
      if (++index[d] < dims.size[d]) break;
      y -= dims.size[d] * dims.y[d] * elem;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const FillArgs*>(raw);
  const FillProblem& p = args.problem;
  char* y = static_cast<char*>(args.y);
  FillLayout dims = merged(p);
  if (lane.count > 1) {
    const int64_t step = grain(dims), size = dims.size[0];
    const Range range = lane_range((size + step - 1) / step, lane);
    const int64_t begin = range.begin * step, end = range.end * step < size ? range.end * step : size;
    if (begin >= end) return;
    y += begin * dims.y[0] * p.elem;
    dims.size[0] = end - begin;
  }
  fill_dims(dims, p.elem, p.bits, y);
}

static bool supports(const void*) { return true; }
static int64_t slices(const void* problem) {
  const FillLayout dims = merged(*static_cast<const FillProblem*>(problem));
  const int64_t step = grain(dims);
  return (dims.size[0] + step - 1) / step;
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const FillProblem*>(problem);
  double bytes = static_cast<double>(p.elem);
  for (int64_t d = 0; d < p.ndim; d++) bytes *= static_cast<double>(p.shape[d]);
  return 30.0 + bytes / 16.0;
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, true};
}

}  // namespace zoi::ZOI_ISA
