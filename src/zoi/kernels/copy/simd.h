// Copies of any strides. After dropping dimensions of 1 and merging those that follow each other:
//   runs        both sides contiguous in the innermost dimension: vector moves
//   transpose   4-byte elements, contiguous in another dimension of x than of y: square blocks through registers
//   channels    the same with 2 to 4 elements in the short dimension and no gaps: whole vectors on both sides
//   splat       x repeats one element along the innermost dimension
//   strided     anything else, one element after another
// The variant's file defines permute2(a, index, b), which takes lanes of a and, from kWidth on, of b, and
// transpose(rows).
#pragma once

#include "copy.h"

namespace zoi::ZOI_ISA {

struct CopyLayout {
  int64_t rank;
  int64_t size[kCopyDims], x[kCopyDims], y[kCopyDims];
};

ZOI_INLINE CopyLayout merged(const CopyProblem& p) {
  CopyLayout dims;
  int64_t n = 0;
  for (int64_t d = 0; d < p.ndim; d++) {
    const int64_t size = p.shape[d], x = p.x_stride[d], y = p.y_stride[d];
    if (size == 1) continue;
    if (n && dims.x[n - 1] == size * x && dims.y[n - 1] == size * y) {
      dims.size[n - 1] *= size;
      dims.x[n - 1] = x;
      dims.y[n - 1] = y;
    } else {
      dims.size[n] = size;
      dims.x[n] = x;
      dims.y[n] = y;
      n++;
    }
  }
  if (n == 0) {
    dims.size[0] = dims.x[0] = dims.y[0] = 1;
    n = 1;
  }
  dims.rank = n;
  return dims;
}

/// Indices of the outermost dimension that make up a slice: whole blocks of a transpose, or a few cache lines.
ZOI_INLINE int64_t grain(const CopyLayout& dims) {
  return dims.rank == 1 ? 1024 : dims.size[0] >= 4 * kWidth ? kWidth : 1;
}

/// Calls body(x, y) for every combination of the outer dimensions, given as indices into dims.
template <class Body>
ZOI_INLINE void for_outer(const CopyLayout& dims, const int64_t* outer, int64_t count, const char* x, char* y,
                          int64_t elem, Body body) {
  int64_t index[kCopyDims] = {};
  for (int64_t k = 0; k < count; k++)
    if (dims.size[outer[k]] == 0) return;
  for (;;) {
    body(x, y);
    int64_t k = count - 1;
    for (; k >= 0; k--) {
      const int64_t d = outer[k];
      x += dims.x[d] * elem;
      y += dims.y[d] * elem;
      if (++index[k] < dims.size[d]) break;
      x -= dims.size[d] * dims.x[d] * elem;
      y -= dims.size[d] * dims.y[d] * elem;
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

struct Plane {  // y[i * y_row + j] = x[i + j * x_row], i < rows, j < cols
  int64_t rows, cols, x_row, y_row;
};

template <bool whole>
ZOI_INLINE void transpose_block(const Plane& p, const float* x, float* y, int rows, int cols) {
  const M some_rows = first(rows), some_cols = first(cols);
  V v[kWidth];
#pragma GCC unroll 16
  for (int j = 0; j < kWidth; j++)
    v[j] = whole ? load(x + j * p.x_row) : j < cols ? load(x + j * p.x_row, some_rows) : zero();
  transpose(v);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; i++) {
    if constexpr (whole)
      store(y + i * p.y_row, v[i]);
    else if (i < rows)
      store(y + i * p.y_row, v[i], some_cols);
  }
}

static void transpose_plane(const Plane& p, const float* x, float* y) {
  for (int64_t i = 0; i < p.rows; i += kWidth) {
    const int rows = static_cast<int>(p.rows - i < kWidth ? p.rows - i : kWidth);
    for (int64_t j = 0; j < p.cols; j += kWidth) {
      const int cols = static_cast<int>(p.cols - j < kWidth ? p.cols - j : kWidth);
      const float* from = x + i + j * p.x_row;
      float* to = y + i * p.y_row + j;
      if (rows == kWidth && cols == kWidth)
        transpose_block<true>(p, from, to, rows, cols);
      else
        transpose_block<false>(p, from, to, rows, cols);
    }
  }
}

// Lane `lane` of vector `v` of the pixels (channels interleaved) is lane flat / count of channel flat % count. Packing
// reads that map forwards, unpacking backwards. Each result takes its lanes from `count` vectors, two at a time.
template <int count, bool pack>
struct ChannelLanes {
  alignas(64) int32_t index[count][count - 1][kWidth];
  constexpr ChannelLanes() : index() {
    for (int v = 0; v < count; v++)
      for (int lane = 0; lane < kWidth; lane++) {
        const int flat = pack ? v * kWidth + lane : lane * count + v;
        const int source = pack ? flat % count : flat / kWidth, from = pack ? flat / count : flat % kWidth;
        for (int s = 1; s < count; s++)
          index[v][s - 1][lane] = source == s ? kWidth + from : source < s && s > 1 ? lane : from;
      }
  }
};

template <int count, bool pack>
ZOI_INLINE void move_channels(int64_t pixels, const float* x, int64_t x_channel, float* y, int64_t y_channel) {
  static constexpr ChannelLanes<count, pack> kLanes;
  const auto shuffle = [](const V* from, int v) __attribute__((always_inline)) {
    V result = from[0];
    for (int s = 1; s < count; s++)
      result = permute2(result, as_int(load(reinterpret_cast<const float*>(kLanes.index[v][s - 1]))), from[s]);
    return result;
  };
  int64_t i = 0;
  V in[count];
  for (; i + kWidth <= pixels; i += kWidth) {
    for (int s = 0; s < count; s++) in[s] = load(pack ? x + s * x_channel + i : x + i * count + s * kWidth);
    for (int v = 0; v < count; v++) store(pack ? y + i * count + v * kWidth : y + v * y_channel + i, shuffle(in, v));
  }
  if (i == pixels) return;
  const int rest = static_cast<int>(pixels - i);
  const M some = first(rest);
  const auto flat = [&](int v) {
    const int left = rest * count - v * kWidth;
    return first(left < 0 ? 0 : left > kWidth ? kWidth : left);
  };
  for (int s = 0; s < count; s++)
    in[s] = pack ? load(x + s * x_channel + i, some) : load(x + i * count + s * kWidth, flat(s));
  for (int v = 0; v < count; v++) {
    if (pack)
      store(y + i * count + v * kWidth, shuffle(in, v), flat(v));
    else
      store(y + v * y_channel + i, shuffle(in, v), some);
  }
}

// Returns whether the plane is one of few channels without gaps.
ZOI_INLINE bool is_channels(const Plane& p) {
  return (p.cols >= 2 && p.cols <= 4 && p.y_row == p.cols) || (p.rows >= 2 && p.rows <= 4 && p.x_row == p.rows);
}
static void move_plane(const Plane& p, const float* x, float* y) {
  if (!is_channels(p)) return transpose_plane(p, x, y);
  if (p.y_row == p.cols) {
    if (p.cols == 2) return move_channels<2, true>(p.rows, x, p.x_row, y, 0);
    if (p.cols == 3) return move_channels<3, true>(p.rows, x, p.x_row, y, 0);
    if (p.cols == 4) return move_channels<4, true>(p.rows, x, p.x_row, y, 0);
  }
  if (p.rows == 2) return move_channels<2, false>(p.cols, x, 0, y, p.y_row);
  if (p.rows == 3) return move_channels<3, false>(p.cols, x, 0, y, p.y_row);
  return move_channels<4, false>(p.cols, x, 0, y, p.y_row);
}

template <class T>
ZOI_INLINE void copy_strided(const char* x, int64_t x_step, char* y, int64_t y_step, int64_t n) {
  const T* from = reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(y);
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; i++) to[i * y_step] = from[i * x_step];
}
template <class T>
ZOI_INLINE void splat(const char* x, char* y, int64_t n) {
  const T value = *reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < n; i++) to[i] = value;
}
template <class T>
ZOI_INLINE void copy_elements(const char* x, int64_t x_step, char* y, int64_t y_step, int64_t n) {
  x_step == 0 && y_step == 1 ? splat<T>(x, y, n) : copy_strided<T>(x, x_step, y, y_step, n);
}

static void copy_dims(const CopyLayout& dims, int64_t elem, const char* x, char* y) {
  constexpr int64_t kOuter[] = {0, 1, 2, 3, 4, 5};
  const int64_t last = dims.rank - 1, n = dims.size[last], x_step = dims.x[last], y_step = dims.y[last];
  if (x_step == 1 && y_step == 1) {
    if (last == 0) return copy_bytes(y, x, n * elem);
    const int64_t rows = dims.size[last - 1], bytes = n * elem;
    const int64_t x_row = dims.x[last - 1] * elem, y_row = dims.y[last - 1] * elem;
    return for_outer(dims, kOuter, last - 1, x, y, elem, [&](const char* from, char* to) {
      for (int64_t i = 0; i < rows; i++) copy_bytes(to + i * y_row, from + i * x_row, bytes);
    });
  }
  if (elem == 4 && y_step == 1) {
    for (int64_t d = last - 1; d >= 0; d--) {
      if (dims.x[d] != 1) continue;
      const Plane plane = {dims.size[d], n, x_step, dims.y[d]};
      if (!is_channels(plane) && (plane.rows < 4 || plane.cols < 4)) break;
      int64_t outer[kCopyDims] = {};
      for (int64_t k = 0; k < last - 1; k++) outer[k] = k < d ? k : k + 1;
      return for_outer(dims, outer, last - 1, x, y, elem, [&](const char* from, char* to) {
        move_plane(plane, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to));
      });
    }
  }
  for_outer(dims, kOuter, last, x, y, elem, [&](const char* from, char* to) {
    if (elem == 4) return copy_elements<uint32_t>(from, x_step, to, y_step, n);
    if (elem == 8) return copy_elements<uint64_t>(from, x_step, to, y_step, n);
    if (elem == 2) return copy_elements<uint16_t>(from, x_step, to, y_step, n);
    return copy_elements<uint8_t>(from, x_step, to, y_step, n);
  });
}

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const CopyArgs*>(raw);
  const CopyProblem& p = args.problem;
  const char* x = static_cast<const char*>(args.x);
  char* y = static_cast<char*>(args.y);
  CopyLayout dims = merged(p);
  if (lane.count > 1) {
    const int64_t step = grain(dims), size = dims.size[0];
    const Range range = lane_range((size + step - 1) / step, lane);
    const int64_t begin = range.begin * step, end = range.end * step < size ? range.end * step : size;
    if (begin >= end) return;
    x += begin * dims.x[0] * p.elem;
    y += begin * dims.y[0] * p.elem;
    dims.size[0] = end - begin;
  }
  copy_dims(dims, p.elem, x, y);
}

static bool supports(const void*) { return true; }
static int64_t slices(const void* problem) {
  const CopyLayout dims = merged(*static_cast<const CopyProblem*>(problem));
  const int64_t step = grain(dims);
  return (dims.size[0] + step - 1) / step;
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  double bytes = static_cast<double>(p.elem);
  for (int64_t d = 0; d < p.ndim; d++) bytes *= static_cast<double>(p.shape[d]);
  return 30.0 + bytes / 8.0;
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, true};
}

}  // namespace zoi::ZOI_ISA
