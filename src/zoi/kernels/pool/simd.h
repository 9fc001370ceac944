// Pooling in float32 vectors over channels: up to 4 vectors of channels of one output pixel at a time, over the part of
// its window that lies inside the image, whose pixels are contiguous in the channels.
#pragma once

#include "pool.h"

namespace zoi::ZOI_ISA {

inline constexpr int kVectors = 4;
inline constexpr int64_t kGroup = 2 * kVectors * kWidth;  // channels of a slice

struct PoolWindow {
  const float* x;
  int64_t rows, cols;          // inside the image
  int64_t row_step, col_step;  // elements
  V factor;                    // of an average
};

// Whichever operand is NaN, one of the two orders keeps it, and any bits or'ed to a NaN's leave a NaN.
ZOI_INLINE V max_keeping_nan(V a, V b) { return bit_or(max_second(a, b), max_second(b, a)); }

template <PoolMode mode>
ZOI_INLINE V combine(V a, V b) {
  if constexpr (mode == kPoolMax) return max_keeping_nan(a, b);
  return add(a, b);
}

// Averages are summed row by row, which rounds less than one long sum.
template <PoolMode mode, int vectors, class... Mask>
ZOI_INLINE void pool_pixel(const PoolWindow& window, int64_t c, float* y, Mask... m) {
  V total[vectors], row[vectors];
  const float* x = window.x + c;
  for (int64_t i = 0; i < window.rows; i++, x += window.row_step) {
    const float* p = x;
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++) row[k] = load(p + k * kWidth, m...);
    for (int64_t j = 1; j < window.cols; j++) {
      p += window.col_step;
#pragma GCC unroll 4
      for (int k = 0; k < vectors; k++) row[k] = combine<mode>(row[k], load(p + k * kWidth, m...));
    }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++) total[k] = i ? combine<mode>(total[k], row[k]) : row[k];
  }
#pragma GCC unroll 4
  for (int k = 0; k < vectors; k++)
    store(y + c + k * kWidth, mode == kPoolMax ? total[k] : mul(total[k], window.factor), m...);
}

template <PoolMode mode>
ZOI_INLINE void pool_channels(const PoolWindow& window, int64_t c, int64_t end, float* y) {
  if (window.rows <= 0 || window.cols <= 0) {
    for (; c < end; c++) y[c] = mode == kPoolMax ? -__builtin_inff() : 0.0f;
    return;
  }
  for (; c + kVectors * kWidth <= end; c += kVectors * kWidth) pool_pixel<mode, kVectors>(window, c, y);
  if (c + 2 * kWidth <= end) {
    pool_pixel<mode, 2>(window, c, y);
    c += 2 * kWidth;
  }
  if (c + kWidth <= end) {
    pool_pixel<mode, 1>(window, c, y);
    c += kWidth;
  }
  if (c < end) pool_pixel<mode, 1>(window, c, y, first(static_cast<int>(end - c)));
}

/// The taps of a window that starts at `start` which lie in [0, size), as [begin, end).
ZOI_INLINE Range taps_inside(int64_t start, int64_t taps, int64_t dilation, int64_t size) {
  if (start >= 0 && start + (taps - 1) * dilation < size) return {0, taps};
  const int64_t begin = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int64_t end = start >= size ? 0 : (size - start + dilation - 1) / dilation;
  return {begin, end < taps ? end : taps};
}

ZOI_INLINE int64_t channel_groups(const PoolProblem& p) { return (p.c + kGroup - 1) / kGroup; }

template <PoolMode mode>
static void run_mode(const PoolArgs& args, Range range) {
  const PoolProblem& p = args.problem;
  const int64_t groups = channel_groups(p);
  PoolWindow window;
  window.row_step = p.dh * p.x_row;
  window.col_step = p.dw * p.x_pixel;
  int64_t known = -1;
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t row = slice / groups, c = (slice - row * groups) * kGroup;
    const int64_t image = row / p.oh, oy = row - image * p.oh, iy = oy * p.sh - p.pt;
    const int64_t end = p.c - c < kGroup ? p.c : c + kGroup;
    const Range ky = taps_inside(iy, p.kh, p.dh, p.ih);
    const int64_t padded_rows = taps_inside(iy, p.kh, p.dh, p.ih + p.pb).end;
    const float* x = args.x + image * p.x_image + (iy + ky.begin * p.dh) * p.x_row;
    float* y = args.y + image * p.y_image + oy * p.y_row;
    window.rows = ky.end - ky.begin;
    for (int64_t ox = 0; ox < p.ow; ox++, y += p.y_pixel) {
      const int64_t ix = ox * p.sw - p.pl;
      const Range kx = taps_inside(ix, p.kw, p.dw, p.iw);
      window.cols = kx.end - kx.begin;
      window.x = x + (ix + kx.begin * p.dw) * p.x_pixel;
      if (mode == kPoolAverage) {
        int64_t count = window.rows * window.cols;
        if (p.count_include_pad) count = padded_rows * taps_inside(ix, p.kw, p.dw, p.iw + p.pr).end;
        if (count != known && count > 0) window.factor = set1(1.0f / static_cast<float>(count)), known = count;
      }
      pool_channels<mode>(window, c, end, y);
    }
  }
}

static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const PoolProblem*>(problem);
  return p.n * p.oh * channel_groups(p);
}
static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const PoolArgs*>(raw);
  const Range range = lane_range(slices(&args.problem), lane);
  args.problem.mode == kPoolMax ? run_mode<kPoolMax>(args, range) : run_mode<kPoolAverage>(args, range);
}

static bool supports(const void*) { return true; }
static double cost(const void* problem) {
  const auto& p = *static_cast<const PoolProblem*>(problem);
  const double vectors = static_cast<double>(p.n * p.oh * p.ow) * static_cast<double>((p.c + kWidth - 1) / kWidth);
  return 40.0 + vectors * (4.0 + 2.0 * static_cast<double>(p.kh * p.kw));
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
