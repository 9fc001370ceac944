// Depthwise convolution in float32 vectors over channels. The channels of a cache line go through the image row by row
// before the next ones, so that the rows of x that neighbouring windows share stay in L1. A tile of up to kTile
// outputs of a row is summed in registers: for each row of the window its weights are loaded once, and each input once,
// wherever it is needed. Rows above or below the image are skipped.
//
// Tiles of the usual windows (3 or 5 wide, stride 1 or 2) know as constants how many of their inputs lie left or right
// of the image, and leave them out. Any other tile reads such inputs from a vector of zeros.
//
// Pixels that lie a power of two apart share a few sets of L1, and are taken for each other's stores. Where the rows of
// a window would not fit these sets, the channels of the cache line are first copied to a dense image in scratch.
//
// Packed weights: [c / kWidth][kh][kw][kWidth], the last block filled with zeros.
#pragma once

#include "depthwise.h"

namespace zoi::ZOI_ISA {

inline constexpr int kTile = 8;
inline constexpr int kGroup = 16 / kWidth;  // vectors of a cache line
alignas(64) static const float kZeros[kWidth] = {};

ZOI_INLINE int64_t channel_blocks(const DepthwiseProblem& p) { return (p.c + kWidth - 1) / kWidth; }
ZOI_INLINE int64_t channel_groups(const DepthwiseProblem& p) { return (channel_blocks(p) + kGroup - 1) / kGroup; }

/// What does not change within a block of channels.
struct DepthwiseBlock {
  V bias, low, high;
  M channels;
  bool tail;  // a partial block, of only these channels
  const float* w;
  const float* zeros;
  int64_t iw, x_row, x_pixel, y_pixel;
  int64_t kw, sw, dw;
};

// Computes some outputs from x's pixel `ix` on, over `rows` rows of the window.
using TileFn = void (*)(const DepthwiseBlock& b, const float* x, int64_t ix, const float* w, int64_t rows, float* y);

// kw and sw as constants; the first `left` inputs and the last `right` are not there.
template <int kw, int sw, int tile, int left, int right>
static void usual_tile(const DepthwiseBlock& b, const float* x, int64_t ix, const float* w, int64_t rows, float* y) {
  constexpr int inputs = (tile - 1) * sw + kw;
  const int64_t x_pixel = b.x_pixel, x_row = b.x_row, y_pixel = b.y_pixel;
  V sum[tile];
#pragma GCC unroll 8
  for (int t = 0; t < tile; t++) sum[t] = b.bias;
  x += (ix + left) * x_pixel;
  for (int64_t ky = 0; ky < rows; ky++, x += x_row, w += kw * kWidth) {
    V weights[kw];
#pragma GCC unroll 8
    for (int kx = 0; kx < kw; kx++) weights[kx] = load(w + kx * kWidth);
    const float* p = x;
#pragma GCC unroll 32
    for (int i = left; i < inputs - right; i++, p += x_pixel) {
      const V v = load(p);
#pragma GCC unroll 8
      for (int kx = kw - 1; kx >= 0; kx--)
        if (i >= kx && (i - kx) % sw == 0 && (i - kx) / sw < tile)
          sum[(i - kx) / sw] = fma(v, weights[kx], sum[(i - kx) / sw]);
    }
  }
  const V low = b.low, high = b.high;
#pragma GCC unroll 8
  for (int t = 0; t < tile; t++, y += y_pixel) store(y, min_second(high, max_second(low, sum[t])));
}

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

template <int tile, bool edge, bool tail>
static void any_tile(const DepthwiseBlock& b, const float* x, int64_t ix, const float* w, int64_t rows, float* y) {
  const float* const zeros = b.zeros;
  const int64_t iw = b.iw, x_pixel = b.x_pixel, sw = b.sw, dw = b.dw, kw = b.kw;
  V sum[tile];
#pragma GCC unroll 8
  for (int t = 0; t < tile; t++) sum[t] = b.bias;
  for (int64_t ky = 0; ky < rows; ky++, x += b.x_row)
    for (int64_t kx = 0; kx < kw; kx++, w += kWidth) {
      const V weight = load(w);
      int64_t i = ix + kx * dw;
#pragma GCC unroll 8
      for (int t = 0; t < tile; t++, i += sw) {
        const float* p = x + i * x_pixel;
        if constexpr (edge) p = static_cast<uint64_t>(i) < static_cast<uint64_t>(iw) ? p : zeros;
        sum[t] = fma(load_channels<tail>(p, b.channels), weight, sum[t]);
      }
    }
  const V low = b.low, high = b.high;
  const int64_t y_pixel = b.y_pixel;
#pragma GCC unroll 8
  for (int t = 0; t < tile; t++)
    store_channels<tail>(y + t * y_pixel, min_second(high, max_second(low, sum[t])), b.channels);
}

template <int n>
struct Constant {
  static constexpr int value = n;
};
/// Calls body with `value`, 1 to kTile, as a constant.
template <class Body>
ZOI_INLINE TileFn with_width(int64_t value, Body body) {
  switch (value) {
    case 1:
      return body(Constant<1>{});
    case 2:
      return body(Constant<2>{});
    case 3:
      return body(Constant<3>{});
    case 4:
      return body(Constant<4>{});
    case 5:
      return body(Constant<5>{});
    case 6:
      return body(Constant<6>{});
    case 7:
      return body(Constant<7>{});
    default:
      return body(Constant<8>{});
  }
}

template <int kw, int sw>
ZOI_INLINE TileFn find_usual(int64_t width, int64_t left, int64_t right) {
  constexpr int kEdge = kw / 2;
  if ((left != 0 && left != kEdge) || right > kEdge) return nullptr;
  return with_width(width, [&](auto tile) __attribute__((always_inline)) -> TileFn {
    constexpr int t = decltype(tile)::value;
    if constexpr ((t - 1) * sw + 1 > kEdge) {  // or one tile would reach over both ends
      if (right == kEdge) return left ? usual_tile<kw, sw, t, kEdge, kEdge> : usual_tile<kw, sw, t, 0, kEdge>;
      if (right == 0) return left ? usual_tile<kw, sw, t, kEdge, 0> : usual_tile<kw, sw, t, 0, 0>;
      if constexpr (sw == 2 && kEdge == 2) return left ? usual_tile<kw, sw, t, kEdge, 1> : usual_tile<kw, sw, t, 0, 1>;
    }
    return nullptr;
  });
}

/// The tile of `width` outputs whose first input is x's pixel `ix`.
static TileFn find_tile(const DepthwiseProblem& p, bool tail, int64_t width, int64_t ix) {
  const int64_t past = ix + (width - 1) * p.sw + (p.kw - 1) * p.dw + 1 - p.iw;
  const int64_t left = ix < 0 ? -ix : 0, right = past > 0 ? past : 0;
  TileFn found = nullptr;
  if (!tail && p.dw == 1) {
    if (p.kw == 3 && p.sw == 1) found = find_usual<3, 1>(width, left, right);
    if (p.kw == 3 && p.sw == 2) found = find_usual<3, 2>(width, left, right);
    if (p.kw == 5 && p.sw == 1) found = find_usual<5, 1>(width, left, right);
    if (p.kw == 5 && p.sw == 2) found = find_usual<5, 2>(width, left, right);
  }
  if (found) return found;
  return with_width(width, [&](auto tile) __attribute__((always_inline)) -> TileFn {
    constexpr int t = decltype(tile)::value;
    const bool edge = left || right;
    if (tail) return edge ? any_tile<t, true, true> : any_tile<t, false, true>;
    return edge ? any_tile<t, true, false> : any_tile<t, false, false>;
  });
}

/// A row of outputs cut into tiles whose widths differ by at most one, the wider ones first. Those of both ends and of
/// the inside are looked up once; where an image is so narrow that others meet its ends, they are looked up each time.
struct Tiles {
  int64_t count, width, wider;
  TileFn first, inside_wide, inside, last;

  [[gnu::always_inline]] Tiles(const DepthwiseProblem& p, bool tail) {
    count = (p.ow + kTile - 1) / kTile;
    width = p.ow / count;
    wider = p.ow % count;
    const int64_t last_width = width + (wider == count);
    first = find_tile(p, tail, width + (wider > 0), -p.pl);
    last = find_tile(p, tail, last_width, (p.ow - last_width) * p.sw - p.pl);
    const int64_t middle = p.iw >= (kTile - 1) * p.sw + (p.kw - 1) * p.dw + 1 ? 0 : -1;
    inside = middle < 0 ? nullptr : find_tile(p, tail, width, middle);
    inside_wide = middle < 0 ? nullptr : find_tile(p, tail, width + 1, middle);
  }
};

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

ZOI_INLINE void row_of(const DepthwiseBlock& b, const DepthwiseProblem& p, const Tiles& tiles, const float* x,
                       const float* w, int64_t rows, float* y) {
  const int64_t reach = (p.kw - 1) * p.dw;
  tiles.first(b, x, -p.pl, w, rows, y);
  int64_t width = tiles.width + (tiles.wider > 0), ix = width * p.sw - p.pl;
  for (int64_t i = 1; i < tiles.count; i++) {
    y += width * b.y_pixel;
    width = tiles.width + (i < tiles.wider);
    TileFn tile = i + 1 == tiles.count ? tiles.last : i < tiles.wider ? tiles.inside_wide : tiles.inside;
    if (i + 1 < tiles.count && (ix < 0 || ix + (width - 1) * p.sw + reach >= p.iw))
      tile = find_tile(p, b.tail, width, ix);
    tile(b, x, ix, w, rows, y);
    ix += width * p.sw;
  }
}

inline constexpr int64_t kMostDenseBytes = 256 << 10;
ZOI_INLINE int64_t dense_bytes(const DepthwiseProblem& p) { return p.ih * p.iw * 64; }
/// Whether to copy the channels of a cache line to a dense image first.
ZOI_INLINE bool is_crowded(const DepthwiseProblem& p) {
  constexpr int64_t kLines = 512;  // of an L1 of 32 KB
  if (p.kh * p.kw == 1 || p.x_pixel <= 0 || p.x_pixel % 16 || p.kh > kLines || p.iw > kMostDenseBytes / 64 / p.ih)
    return false;
  const int64_t lines = p.x_pixel / 16, shared = lines & -lines;  // one line in `shared` is used
  return (p.kh + 1) * p.iw * (shared < 64 ? shared : 64) > kLines;
}
static void copy_dense(const DepthwiseProblem& p, const float* x, int64_t channels, Range rows, float* to) {
  for (int64_t iy = rows.begin; iy < rows.end; iy++) {
    const float* from = x + iy * p.x_row;
    float* at = to + iy * p.iw * 16;
    if (channels >= 16) {
      for (int64_t ix = 0; ix < p.iw; ix++, from += p.x_pixel, at += 16)
#pragma GCC unroll 2
        for (int k = 0; k < 16; k += kWidth) store(at + k, load(from + k));
    } else {
      for (int64_t ix = 0; ix < p.iw; ix++, from += p.x_pixel, at += 16)
        for (int64_t k = 0; k < channels; k++) at[k] = from[k];
    }
  }
}

/// The order of the work: bands of `rows` rows of y, in each band all groups of channels, in each group its rows.
struct Bands {
  int64_t rows, count;
  bool streams;  // x and y are larger than L2 keeps: fetch the next band, in the order of memory, during this one
};
ZOI_INLINE Bands bands_of(const DepthwiseProblem& p) {
  constexpr int64_t kKept = 512 << 10, kFetched = 256 << 10, kMostRows = 8;
  const int64_t row = 4 * p.c * (p.iw * p.sh + p.ow), rows = p.oh < kMostRows ? p.oh : kMostRows;
  if (row <= kKept / (p.oh > 0 ? p.oh : 1)) {
    const int64_t all = channel_groups(p) >= kMostRows ? p.oh : rows;  // enough slices for a few lanes
    return {all, (p.oh + all - 1) / all, false};
  }
  const int64_t fit = kFetched / row < 1 ? 1 : kFetched / row, taken = fit < rows ? fit : rows;
  return {taken, (p.oh + taken - 1) / taken, true};
}

/// Memory to fetch bit by bit.
struct Fetch {
  const char *at, *end;

  [[gnu::always_inline]] void advance(int64_t lines) {
    for (int64_t i = 0; i < lines && at < end; i++, at += 64) __builtin_prefetch(at, 0, 2);
  }
};
ZOI_INLINE Fetch fetch_of(const float* p, int64_t row_step, int64_t begin, int64_t end) {
  const char* base = reinterpret_cast<const char*>(p);
  return {base + begin * row_step * 4, base + (end > begin ? end : begin) * row_step * 4};
}

/// What a run needs beside its arguments.
struct DepthwiseRun {
  const DepthwiseArgs& args;
  const Tiles whole, rest;
  const bool crowded, second_pass;
  float* scratch;
  DepthwiseBlock blocks[kGroup];

  [[gnu::always_inline]] DepthwiseRun(const DepthwiseArgs& a, float* memory)
      : args(a),
        whole(a.problem, false),
        rest(a.problem, true),
        crowded(is_crowded(a.problem)),
        second_pass(a.problem.act != kActNone && a.problem.act != kActRelu && a.problem.act != kActClip),
        scratch(memory) {
    const DepthwiseProblem& p = args.problem;
    for (DepthwiseBlock& b : blocks) {
      b.low = set1(p.act == kActRelu ? 0.0f : p.act == kActClip ? static_cast<float>(p.act_p0) : -__builtin_inff());
      b.high = set1(p.act == kActClip ? static_cast<float>(p.act_p1) : __builtin_inff());
      b.zeros = kZeros;
      b.x_row = (crowded ? p.iw * 16 : p.x_row) * p.dh, b.x_pixel = crowded ? 16 : p.x_pixel;
      b.iw = p.iw, b.y_pixel = p.y_pixel, b.kw = p.kw, b.sw = p.sw, b.dw = p.dw;
    }
  }
};

/// Rows of y of the group of channels from `c` on. After each row, `lines` of each of `next` are fetched.
static void rows_of(DepthwiseRun& run, int64_t image, int64_t c, Range rows, Fetch (&next)[2],
                    const int64_t (&lines)[2]) {
  const DepthwiseArgs& args = run.args;
  const DepthwiseProblem& p = args.problem;
  int count = 0;
  for (; count < kGroup && c + count * kWidth < p.c; count++) {
    DepthwiseBlock& b = run.blocks[count];
    const int64_t at = c + count * kWidth, left = p.c - at;
    b.tail = left < kWidth;
    b.channels = first(static_cast<int>(b.tail ? left : kWidth));
    b.bias = args.bias ? load(args.bias + at, b.channels) : zero();
    b.w = args.w + at * p.kh * p.kw;
  }
  const float* plane = args.x + image * p.x_image + c;
  int64_t x_row = p.x_row;
  if (run.crowded) {
    const int64_t low = rows.begin * p.sh - p.pt, high = (rows.end - 1) * p.sh - p.pt + (p.kh - 1) * p.dh + 1;
    copy_dense(p, plane, p.c - c, {low < 0 ? 0 : low, high > p.ih ? p.ih : high}, run.scratch);
    plane = run.scratch, x_row = p.iw * 16;
  }
  for (int64_t oy = rows.begin; oy < rows.end; oy++) {
    const int64_t iy = oy * p.sh - p.pt;
    int64_t begin = 0, end = p.kh;  // the window's rows that lie inside the image
    if (iy < 0) begin = (-iy + p.dh - 1) / p.dh;
    if (iy + (p.kh - 1) * p.dh >= p.ih) end = iy >= p.ih ? 0 : (p.ih - iy + p.dh - 1) / p.dh;
    if (begin > end) begin = end;
    const float* x = plane + (begin < end ? (iy + begin * p.dh) * x_row : 0);
    float* y = args.y + image * p.y_image + c + oy * p.y_row;
    for (int k = 0; k < count; k++, x += kWidth, y += kWidth) {
      const DepthwiseBlock& b = run.blocks[k];
      row_of(b, p, b.tail ? run.rest : run.whole, x, b.w + begin * p.kw * kWidth, end - begin, y);
      if (run.second_pass) b.tail ? activate_row<true>(b, p, y) : activate_row<false>(b, p, y);
    }
    next[0].advance(lines[0]);
    next[1].advance(lines[1]);
  }
}

// Slices are groups of channels in bands of rows.
static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const DepthwiseArgs*>(raw);
  const DepthwiseProblem& p = args.problem;
  if (p.ow == 0 || p.oh == 0 || p.c == 0) return;
  const Bands bands = bands_of(p);
  const int64_t groups = channel_groups(p);
  const Range range = lane_range(p.n * bands.count * groups, lane);
  DepthwiseRun state(args, reinterpret_cast<float*>(lane.scratch));
  Fetch next[2] = {};
  int64_t lines[2] = {};
  const auto rows_below = [&](int64_t oy) {  // of x, above the windows of row oy
    const int64_t row = oy * p.sh - p.pt + (p.kh - 1) * p.dh + 1 - p.sh;
    return row < 0 ? 0 : row > p.ih ? p.ih : row;
  };
  int64_t place = range.begin / groups, group = range.begin - place * groups;
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t image = place / bands.count, begin = (place - image * bands.count) * bands.rows;
    const int64_t end = begin + bands.rows < p.oh ? begin + bands.rows : p.oh;
    if (bands.streams && (group == 0 || slice == range.begin)) {
      const float *x = args.x + image * p.x_image, *y = args.y + image * p.y_image;
      if (slice == range.begin) {
        Fetch band = fetch_of(x, p.x_row, begin ? rows_below(begin) : 0, rows_below(end));
        band.advance(INT64_MAX);
      }
      const int64_t after = end + bands.rows < p.oh ? end + bands.rows : p.oh;
      next[0] = fetch_of(x, p.x_row, rows_below(end), end < p.oh ? rows_below(after) : 0);
      next[1] = fetch_of(y, p.y_row, end, after);
      const int64_t times = groups * (end - begin) * 64;
      for (int k = 0; k < 2; k++) lines[k] = (next[k].end - next[k].at + times - 1) / times;
    }
    rows_of(state, image, group * kGroup * kWidth, {begin, end}, next, lines);
    if (++group == groups) group = 0, place++;
  }
}

// Half a vector of channels or less is left to narrower vectors.
static bool supports(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return kWidth <= 8 || p.c % kWidth == 0 || p.c % kWidth > kWidth / 2;
}
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return p.n * channel_groups(p) * bands_of(p).count;
}
static int64_t scratch(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return is_crowded(p) ? dense_bytes(p) : 0;
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
  return {name, arch, run, supports, slices, scratch, packed_bytes, pack, cost, false};
}

}  // namespace zoi::ZOI_ISA
