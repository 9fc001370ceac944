// Depthwise convolution in float32 vectors over channels. A block of kWidth channels goes through the image row by row
// before the next block, so that the rows of x that neighbouring windows share stay in L1. A tile of up to kTile
// outputs of a row is summed in registers: for each row of the window its weights are loaded once, and each input once,
// wherever it is needed. Inputs left or right of the image are read from a vector of zeros; rows above or below are
// skipped.
//
// Packed weights: [c / kWidth][kh][kw][kWidth], the last block filled with zeros.
#pragma once

#include "depthwise.h"

namespace zoi::ZOI_ISA {

inline constexpr int kTile = 8;
alignas(64) static const float kZeros[kWidth] = {};

ZOI_INLINE int64_t channel_blocks(const DepthwiseProblem& p) { return (p.c + kWidth - 1) / kWidth; }

/// What does not change within a block of channels.
struct DepthwiseBlock {
  const float* w;
  V bias, low, high;
  M channels;          // of the last, partial block
  int64_t iw, x_row, x_pixel, y_pixel;
  int64_t kw, sw, dw;  // where the tile does not have them as constants
};

template <bool tail>
ZOI_INLINE V load_channels(const float* p, M m) {
  if constexpr (tail) return load(p, m);
  return load(p);
}
template <bool tail>
ZOI_INLINE void store_channels(float* p, V v, M m) {
  if constexpr (tail) return store(p, v, m);
  store(p, v);
}

// `tile` outputs from x's pixel `ix` on, which may lie outside of the image if `edge`. kw == 0: any window and stride.
template <int kw, int sw, int tile, bool edge, bool tail>
ZOI_INLINE void tile_of(const DepthwiseBlock& b, const float* x, int64_t ix, const float* w, int64_t rows, float* y) {
  const M m = b.channels;
  const auto input = [&](const float* row, int64_t i) __attribute__((always_inline)) {
    const float* p = row + (ix + i) * b.x_pixel;
    if constexpr (edge) p = static_cast<uint64_t>(ix + i) < static_cast<uint64_t>(b.iw) ? p : kZeros;
    return load_channels<tail>(p, m);
  };
  V sum[tile];
#pragma GCC unroll 8
  for (int t = 0; t < tile; t++) sum[t] = b.bias;
  for (int64_t ky = 0; ky < rows; ky++, x += b.x_row) {
    if constexpr (kw == 0) {
      for (int64_t kx = 0; kx < b.kw; kx++, w += kWidth) {
        const V weight = load(w);
#pragma GCC unroll 8
        for (int t = 0; t < tile; t++) sum[t] = fma(input(x, t * b.sw + kx * b.dw), weight, sum[t]);
      }
    } else {
      V weights[kw ? kw : 1];
#pragma GCC unroll 8
      for (int kx = 0; kx < kw; kx++) weights[kx] = load(w + kx * kWidth);
#pragma GCC unroll 32
      for (int i = 0; i < (tile - 1) * sw + kw; i++) {
        const V v = input(x, i);
#pragma GCC unroll 8
        for (int kx = kw - 1; kx >= 0; kx--)
          if (i >= kx && (i - kx) % sw == 0 && (i - kx) / sw < tile)
            sum[(i - kx) / sw] = fma(v, weights[kx], sum[(i - kx) / sw]);
      }
      w += kw * kWidth;
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < tile; t++)
    store_channels<tail>(y + t * b.y_pixel, min_second(b.high, max_second(b.low, sum[t])), m);
}

/// Cuts a row into `count` tiles whose widths differ by at most one.
struct Tiles {
  int64_t count, width, wider;
};
ZOI_INLINE Tiles tiles_of(int64_t ow) {
  const int64_t count = (ow + kTile - 1) / kTile;
  return {count, ow / count, ow % count};
}

template <int kw, int sw, bool tail>
ZOI_INLINE void row_of(const DepthwiseBlock& b, const DepthwiseProblem& p, const Tiles& tiles, const float* x,
                       const float* w, int64_t rows, float* y) {
  const int64_t reach = (b.kw - 1) * b.dw;
  int64_t ix = -p.pl;
  for (int64_t i = 0; i < tiles.count; i++) {
    const int64_t width = tiles.width + (i < tiles.wider);
    const bool edge = ix < 0 || ix + (width - 1) * p.sw + reach >= b.iw;
    if (width == kTile && !edge) {
      tile_of<kw, sw, kTile, false, tail>(b, x, ix, w, rows, y);
    } else {
      switch (width) {
        case 1: tile_of<kw, sw, 1, true, tail>(b, x, ix, w, rows, y); break;
        case 2: tile_of<kw, sw, 2, true, tail>(b, x, ix, w, rows, y); break;
        case 3: tile_of<kw, sw, 3, true, tail>(b, x, ix, w, rows, y); break;
        case 4: tile_of<kw, sw, 4, true, tail>(b, x, ix, w, rows, y); break;
        case 5: tile_of<kw, sw, 5, true, tail>(b, x, ix, w, rows, y); break;
        case 6: tile_of<kw, sw, 6, true, tail>(b, x, ix, w, rows, y); break;
        case 7: tile_of<kw, sw, 7, true, tail>(b, x, ix, w, rows, y); break;
        default: tile_of<kw, sw, 8, true, tail>(b, x, ix, w, rows, y); break;
      }
    }
    ix += width * p.sw;
    y += width * b.y_pixel;
  }
}

// Activations other than none, relu and clip are a second pass over a row, which is still in L1.
template <bool tail>
ZOI_INLINE void activate_row(const DepthwiseBlock& b, const DepthwiseProblem& p, float* y) {
  const V p0 = set1(static_cast<float>(p.act_p0)), p1 = set1(static_cast<float>(p.act_p1));
  with_activation(p.act, [&](auto tag) __attribute__((always_inline)) {
    for (int64_t i = 0; i < p.ow; i++) {
      float* at = y + i * b.y_pixel;
      store_channels<tail>(at, activate<decltype(tag)::value>(load_channels<tail>(at, b.channels), p0, p1), b.channels);
    }
  });
}

template <int kw, int sw, bool tail>
static void rows_of(const DepthwiseBlock& b, const DepthwiseProblem& p, const float* x, float* y, Range rows) {
  const Tiles tiles = tiles_of(p.ow);
  const bool second_pass = p.act != kActNone && p.act != kActRelu && p.act != kActClip;
  for (int64_t oy = rows.begin; oy < rows.end; oy++) {
    const int64_t iy = oy * p.sh - p.pt;
    int64_t begin = 0, end = p.kh;  // the window's rows that lie inside the image
    if (iy < 0) begin = (-iy + p.dh - 1) / p.dh;
    if (iy + (p.kh - 1) * p.dh >= p.ih) end = iy >= p.ih ? 0 : (p.ih - iy + p.dh - 1) / p.dh;
    if (begin > end) begin = end;
    const float* row = begin < end ? x + (iy + begin * p.dh) * p.x_row : x;
    row_of<kw, sw, tail>(b, p, tiles, row, b.w + begin * p.kw * kWidth, end - begin, y + oy * p.y_row);
    if (second_pass) activate_row<tail>(b, p, y + oy * p.y_row);
  }
}

using RowsFn = void (*)(const DepthwiseBlock&, const DepthwiseProblem&, const float*, float*, Range);
template <bool tail>
ZOI_INLINE RowsFn choose(const DepthwiseProblem& p) {
  if (p.dw == 1 && p.kw == 3 && p.sw == 1) return rows_of<3, 1, tail>;
  if (p.dw == 1 && p.kw == 3 && p.sw == 2) return rows_of<3, 2, tail>;
  if (p.dw == 1 && p.kw == 5 && p.sw == 1) return rows_of<5, 1, tail>;
  if (p.dw == 1 && p.kw == 5 && p.sw == 2) return rows_of<5, 2, tail>;
  return rows_of<0, 0, tail>;
}

// Slices are rows of y, all those of a block of channels one after another.
static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const DepthwiseArgs*>(raw);
  const DepthwiseProblem& p = args.problem;
  if (p.ow == 0) return;
  const int64_t blocks = channel_blocks(p);
  const Range range = lane_range(p.n * blocks * p.oh, lane);
  DepthwiseBlock b;
  b.low = set1(-__builtin_inff());
  b.high = set1(__builtin_inff());
  if (p.act == kActRelu) b.low = zero();
  if (p.act == kActClip) b.low = set1(static_cast<float>(p.act_p0)), b.high = set1(static_cast<float>(p.act_p1));
  b.iw = p.iw, b.x_row = p.x_row * p.dh, b.x_pixel = p.x_pixel, b.y_pixel = p.y_pixel;
  b.kw = p.kw, b.sw = p.sw, b.dw = p.dw;
  for (int64_t slice = range.begin; slice < range.end;) {
    const int64_t plane = slice / p.oh, oy = slice - plane * p.oh;
    const int64_t image = plane / blocks, block = plane - image * blocks, c = block * kWidth;
    const int64_t rows = range.end - slice < p.oh - oy ? range.end - slice : p.oh - oy;
    const int64_t left = p.c - c;
    b.w = args.w + c * p.kh * p.kw;
    b.channels = first(static_cast<int>(left < kWidth ? left : kWidth));
    b.bias = args.bias ? load(args.bias + c, b.channels) : zero();
    const float* x = args.x + image * p.x_image + c;
    float* y = args.y + image * p.y_image + c;
    const Range some = {oy, oy + rows};
    left < kWidth ? choose<true>(p)(b, p, x, y, some) : choose<false>(p)(b, p, x, y, some);
    slice += rows;
  }
}

// Half a vector of channels or less is left to narrower vectors.
static bool supports(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return kWidth <= 8 || p.c % kWidth == 0 || p.c % kWidth > kWidth / 2;
}
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return p.n * channel_blocks(p) * p.oh;
}
static int64_t packed_bytes(const void* problem, int operand) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return operand == kDepthwiseW ? channel_blocks(p) * kWidth * p.kh * p.kw * 4 : 0;
}
static void pack(const void* problem, int, const void* plain, void* packed) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  const float* from = static_cast<const float*>(plain);
  float* to = static_cast<float*>(packed);
  const int64_t taps = p.kh * p.kw, channels = channel_blocks(p) * kWidth;
  for (int64_t c = 0; c < channels; c++)
    for (int64_t k = 0; k < taps; k++)
      to[(c / kWidth * taps + k) * kWidth + c % kWidth] = c < p.c ? from[c * taps + k] : 0.0f;
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  const double vectors = static_cast<double>(p.n * p.oh * p.ow) * static_cast<double>(channel_blocks(p));
  return 50.0 + vectors * (2.0 + static_cast<double>(p.kh * p.kw) * kWidth / 16.0);
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, packed_bytes, pack, cost, false};
}

}  // namespace zoi::ZOI_ISA
