// Interpolation in float32 vectors over channels. For each output pixel the taps with a weight are listed once; then
// their weighted sum runs over the channels. Nearest neighbours are copies.
#pragma once

#include "resize.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kMaxTaps = 4;

struct ResizeTaps {
  int64_t count;
  int64_t at[kMaxTaps];  // in elements
  float weight[kMaxTaps];
};

ZOI_INLINE ResizeTaps taps_of(const int32_t* index, const float* weight, int64_t taps, int64_t size, int64_t step) {
  ResizeTaps result;
  result.count = 0;
  for (int64_t i = 0; i < taps; i++) {
    if (weight[i] == 0) continue;
    const int64_t at = index[i] < 0 ? 0 : index[i] >= size ? size - 1 : index[i];
    result.at[result.count] = at * step;
    result.weight[result.count++] = weight[i];
  }
  return result;
}

// The sum over h x w taps; what runs over the channels knows their number if it is a constant.
template <int h, int w>
ZOI_INLINE void resize_pixel(const ResizeTaps& rows, const ResizeTaps& cols, const float* x, float* y, int64_t c) {
  constexpr int kMost = h ? h * w : static_cast<int>(kMaxTaps * kMaxTaps);
  const float* from[kMost];
  V weight[kMost];
  int n = 0;
  const auto list = [&](int64_t i, int64_t j) __attribute__((always_inline)) {
    from[n] = x + rows.at[i] + cols.at[j];
    weight[n++] = set1(rows.weight[i] * cols.weight[j]);
  };
  if constexpr (h != 0) {
#pragma GCC unroll 2
    for (int i = 0; i < h; i++)
#pragma GCC unroll 2
      for (int j = 0; j < w; j++) list(i, j);
  } else {
    for (int64_t i = 0; i < rows.count; i++)
      for (int64_t j = 0; j < cols.count; j++) list(i, j);
  }
  const auto sum = [&](int64_t i, auto... m) __attribute__((always_inline)) {
    V v = n ? mul(load(from[0] + i, m...), weight[0]) : zero();
    if constexpr (h != 0) {
#pragma GCC unroll 4
      for (int k = 1; k < kMost; k++) v = fma(load(from[k] + i, m...), weight[k], v);
    } else {
      for (int k = 1; k < n; k++) v = fma(load(from[k] + i, m...), weight[k], v);
    }
    store(y + i, v, m...);
  };
  int64_t i = 0;
  for (; i + kWidth <= c; i += kWidth) sum(i);
  if (i < c) sum(i, first(static_cast<int>(c - i)));
}

ZOI_INLINE void copy_pixel(const float* x, float* y, int64_t c) {
  int64_t i = 0;
  for (; i + kWidth <= c; i += kWidth) store(y + i, load(x + i));
  if (i < c) {
    const M m = first(static_cast<int>(c - i));
    store(y + i, load(x + i, m), m);
  }
}

ZOI_INLINE void nearest_row(const ResizeArgs& args, const float* x, float* y) {
  const ResizeProblem& p = args.problem;
  for (int64_t ox = 0; ox < p.ow; ox++, y += p.y_pixel) {
    const int64_t index = args.w_index[ox], ix = index < 0 ? 0 : index >= p.iw ? p.iw - 1 : index;
    const float weight = args.w_weight[ox];
    if (weight == 1) {
      copy_pixel(x + ix * p.x_pixel, y, p.c);
    } else {
      for (int64_t c = 0; c < p.c; c++) y[c] = weight == 0 ? 0.0f : weight * x[ix * p.x_pixel + c];
    }
  }
}

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const ResizeArgs*>(raw);
  const ResizeProblem& p = args.problem;
  const int64_t taps = p.taps;
  const Range range = lane_range(p.n * p.oh, lane);
  for (int64_t row = range.begin; row < range.end; row++) {
    const int64_t image = row / p.oh, oy = row - image * p.oh;
    const ResizeTaps rows = taps_of(args.h_index + oy * taps, args.h_weight + oy * taps, taps, p.ih, p.x_row);
    const float* x = args.x + image * p.x_image;
    float* y = args.y + image * p.y_image + oy * p.y_row;
    if (taps == 1 && rows.count == 1 && rows.weight[0] == 1) {
      nearest_row(args, x + rows.at[0], y);
      continue;
    }
    for (int64_t ox = 0; ox < p.ow; ox++, y += p.y_pixel) {
      const ResizeTaps cols = taps_of(args.w_index + ox * taps, args.w_weight + ox * taps, taps, p.iw, p.x_pixel);
      if (rows.count == 1 && cols.count == 1) {
        resize_pixel<1, 1>(rows, cols, x, y, p.c);
      } else if (rows.count == 2 && cols.count == 2) {
        resize_pixel<2, 2>(rows, cols, x, y, p.c);
      } else if (rows.count == 1 && cols.count == 2) {
        resize_pixel<1, 2>(rows, cols, x, y, p.c);
      } else if (rows.count == 2 && cols.count == 1) {
        resize_pixel<2, 1>(rows, cols, x, y, p.c);
      } else {
        resize_pixel<0, 0>(rows, cols, x, y, p.c);
      }
    }
  }
}

static bool supports(const void* problem) { return static_cast<const ResizeProblem*>(problem)->taps <= kMaxTaps; }
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const ResizeProblem*>(problem);
  return p.n * p.oh;
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const ResizeProblem*>(problem);
  const double vectors = static_cast<double>((p.c + kWidth - 1) / kWidth) * static_cast<double>(p.taps * p.taps);
  return 30.0 + static_cast<double>(p.n * p.oh * p.ow) * (10.0 + vectors);
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
