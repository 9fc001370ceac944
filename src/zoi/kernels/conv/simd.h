// Direct convolution in float32 vectors, over blocks of output pixels: whole rows, or parts of one long row.
//
// Rows: the input rows that a block needs are copied to lane scratch with their padding, channels together, so that
// the kw * ic inputs of one kernel row follow each other for every pixel, and a register tile (simd/tile.h) sums kh
// times over kw * ic terms. The copy is small beside the sums, which read it once for each group of output channels.
// Taps: with gaps between the taps of a row (dilation), or only one tap, there are pointers to ic inputs for each pixel
// and tap, or to zeros outside the image.
// With few output channels, neighbouring pixels that lie contiguous in y become channels of one wide pixel: its kernel
// is as many times wider as the pixels are apart, with zeros outside each one's own taps, and fills the vectors.
// Weights are packed as groups of [kh][kw][ic][NV * W].
#pragma once

#include "conv.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kBlockPixels = 192;

enum class ConvMode { rows, taps };
struct ConvShape {
  ConvMode mode;
  int64_t depth;          // terms of one output element
  int64_t sums, length;   // a tile sums `sums` times over `length` terms
  int64_t rows, columns;  // output pixels of a block
  int64_t row_blocks, column_blocks, blocks;
  int64_t wide, kw, oc;        // pixels made one, and that pixel's taps and channels
  bool direct;                 // rows mode: no padding, so the rows need no copy
  int64_t source_rows, pitch;  // rows mode: input rows that a block copies, floats of one
  int64_t pixels;              // of a block
};
ZOI_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
ZOI_INLINE int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// Multiplications of one row of the kernel for each pixel, in lanes, when `wide` pixels are one.
ZOI_INLINE double wide_cost(const ConvProblem& p, int64_t wide) {
  const int64_t vectors = columns_of(wide * p.oc).vectors;
  const double lanes = static_cast<double>(vectors * kWidth) * (vectors == 1 ? 1.15 : 1.0);
  return lanes * static_cast<double>(p.kw + (wide - 1) * p.sw) / static_cast<double>(wide);
}
ZOI_INLINE int64_t wide_pixels(const ConvProblem& p, bool has_residual) {
  if (p.groups != 1 || p.dw != 1 || p.y_pixel != p.oc || (has_residual && p.r_pixel != p.oc)) return 1;
  // Pixels computed again must not pass through an activation's second pass again, nor add a residual that may by then
  // be their own result.
  const bool overlap = is_clamp(p.act) && !has_residual;
  int64_t best = 1;
  for (int64_t wide = 2; wide <= 16 && wide <= p.ow; wide++)
    if (wide * p.oc <= 3 * kWidth && (overlap || p.ow % wide == 0) && wide_cost(p, wide) < 0.9 * wide_cost(p, best))
      best = wide;
  return best;
}

/// Floats that a block's copied rows may take. Kernels, strides and dilations that reach further take pointers instead.
inline constexpr double kMostCopied = 1 << 24;

ZOI_INLINE ConvShape shape_with(const ConvProblem& p, int64_t wide, bool may_copy) {
  ConvShape s;
  s.wide = wide;
  s.kw = p.kw + (s.wide - 1) * p.sw;
  s.oc = s.wide * p.oc;
  const int64_t taps = p.kh * s.kw;
  s.depth = taps * p.ic;
  const int64_t ow = parts_of(p.ow, s.wide);
  s.columns = ow <= kBlockPixels ? ow : parts_of(ow, parts_of(ow, kBlockPixels));
  s.rows = s.columns < ow || ow == 0 || p.oh == 0 ? 1 : smaller(p.oh, kBlockPixels / ow);
  if (p.oh > 0) s.rows = parts_of(p.oh, parts_of(p.oh, s.rows));
  s.row_blocks = parts_of(p.oh, s.rows);
  s.column_blocks = s.columns > 0 ? parts_of(ow, s.columns) : 0;
  s.blocks = p.n * s.row_blocks * s.column_blocks;
  s.pixels = s.rows * s.columns;
  s.direct = p.pt == 0 && p.pl == 0 && p.x_pixel == p.ic && (p.oh - 1) * p.sh + (p.kh - 1) * p.dh < p.ih &&
             (p.ow - 1) * p.sw + p.kw <= p.iw;
  const int64_t height = (s.rows - 1) * p.sh + (p.kh - 1) * p.dh + 1, width = (s.columns * s.wide - 1) * p.sw + p.kw;
  const double copied = static_cast<double>(height) * static_cast<double>(width) * static_cast<double>(p.ic);
  const bool rows = taps > 1 && p.dw == 1 && (s.direct || (may_copy && copied <= kMostCopied));
  s.mode = rows ? ConvMode::rows : ConvMode::taps;
  s.direct = s.direct && rows;
  s.sums = rows ? p.kh : taps;
  s.length = s.depth / s.sums;
  s.source_rows = rows && !s.direct ? height : 0;
  s.pitch = rows && !s.direct ? width * p.ic : 0;
  return s;
}
ZOI_INLINE ConvShape shape_of(const ConvProblem& p) {
  const ConvShape s = shape_with(p, wide_pixels(p, p.r_pixel != 0), true);
  return s.mode == ConvMode::taps && s.wide > 1 ? shape_with(p, 1, false) : s;  // wide pixels need rows
}

/// Lane scratch: zeros, pointers to inputs [taps or 1][pixels], outputs and residuals [pixels], copied rows.
struct ConvScratch {
  float* zeros;
  const float** inputs;
  float** outputs;
  const float** residuals;
  float* copies;
};
ZOI_INLINE int64_t input_pointers(const ConvShape& s) { return (s.mode == ConvMode::taps ? s.sums : 1) * s.pixels; }
ZOI_INLINE int64_t conv_scratch(const ConvProblem& p, const ConvShape& s) {
  return p.ic * 4 + 64 + (input_pointers(s) + 2 * s.pixels) * 8 + s.source_rows * s.pitch * 4;
}
ZOI_INLINE ConvScratch split_scratch(std::byte* memory, const ConvProblem& p, const ConvShape& s) {
  ConvScratch at;
  at.zeros = reinterpret_cast<float*>(memory);
  memory += parts_of(p.ic * 4, 64) * 64;
  at.inputs = reinterpret_cast<const float**>(memory);
  memory += input_pointers(s) * 8;
  at.outputs = reinterpret_cast<float**>(memory);
  at.residuals = reinterpret_cast<const float**>(memory + s.pixels * 8);
  at.copies = reinterpret_cast<float*>(memory + 2 * s.pixels * 8);
  return at;
}

struct ConvTile {
  const float* const* inputs;
  int64_t stride;  // pointers between sums,
  int64_t step;    // or floats
  int64_t sums, length;
  const float* w;
  float* const* outputs;
  const float* const* residuals;  // or null
  int64_t act;
  float p0, p1;
  bool after;
  int64_t columns;
};

template <int MR, int NV>
[[gnu::noinline]] static void conv_tile(const ConvTile& t, const Epilogue& e, int64_t column, int last) {
  constexpr int U = kUnroll<MR, NV>;
  V acc[U][MR][NV];
  clear(acc);
  const float* w = t.w;
  const float* const* inputs = t.inputs;
  for (int64_t s = 0; s < t.sums; s++) {
    const float* rows[MR];
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++) rows[i] = inputs[i] + s * t.step;
    multiply<MR, NV, U>(acc, rows, w, NV * kWidth, t.length);
    w += t.length * NV * kWidth;
    inputs += t.stride;
  }
  const auto residual = [&](int i) __attribute__((always_inline)) { return t.residuals[i] + column; };
  const auto out = [&](int i) __attribute__((always_inline)) { return t.outputs[i] + column; };
  finish(acc, e, t.residuals != nullptr && !t.after, residual, out, last);
  if (t.act != kActNone || t.after) {
    float* stored[MR];
    const float* added[MR];
    for (int i = 0; i < MR; i++) {
      stored[i] = out(i);
      added[i] = t.after ? residual(i) : nullptr;
    }
    activate_rows(stored, t.after ? added : nullptr, MR, t.columns, t.act, t.p0, t.p1);
  }
}

ZOI_INLINE void copy_floats(float* to, const float* from, int64_t count) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(to + i, load(from + i));
  if (i < count) {
    const M rest = first(static_cast<int>(count - i));
    store(to + i, load(from + i, rest), rest);
  }
}
ZOI_INLINE void zero_floats(float* to, int64_t count) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(to + i, zero());
  if (i < count) store(to + i, zero(), first(static_cast<int>(count - i)));
}

/// Pixels [x, x + count) of row y of an image, zeros outside it.
ZOI_INLINE void copy_row(const ConvProblem& p, const float* image, int64_t y, int64_t x, int64_t count, float* to) {
  if (y < 0 || y >= p.ih) return zero_floats(to, count * p.ic);
  const int64_t before = smaller(x < 0 ? -x : 0, count);
  const int64_t within = smaller(x + count, p.iw) - (x + before), inside = within > 0 ? within : 0;
  const float* from = image + y * p.x_row + (x + before) * p.x_pixel;
  zero_floats(to, before * p.ic);
  to += before * p.ic;
  if (p.x_pixel == p.ic) {
    copy_floats(to, from, inside * p.ic);
  } else {
    for (int64_t i = 0; i < inside; i++) copy_floats(to + i * p.ic, from + i * p.x_pixel, p.ic);
  }
  zero_floats(to + inside * p.ic, (count - before - inside) * p.ic);
}

struct ConvBlock {
  int64_t n, y, x, rows, columns;  // output pixels; columns are wide ones
};
ZOI_INLINE ConvBlock block_at(const ConvProblem& p, const ConvShape& s, int64_t b) {
  ConvBlock at;
  const int64_t column = b % s.column_blocks, row = b / s.column_blocks % s.row_blocks;
  at.n = b / s.column_blocks / s.row_blocks;
  at.y = row * s.rows;
  at.x = smaller(column * s.columns * s.wide, p.ow - s.wide);  // the last one is a whole wide pixel at least
  at.rows = smaller(s.rows, p.oh - at.y);
  at.columns = smaller(s.columns, parts_of(p.ow - at.x, s.wide));
  return at;
}

/// Pointers, and copies, of a block's pixels for input channels from `channel`.
[[gnu::noinline, maybe_unused]] static void prepare_block(const ConvArgs& args, const ConvShape& s,
                                                          const ConvScratch& at, const ConvBlock& block,
                                                          int64_t channel) {
  const ConvProblem& p = args.problem;
  const float* image = args.x + block.n * p.x_image + channel;
  const int64_t top = block.y * p.sh - p.pt, left = block.x * p.sw - p.pl;
  const int64_t last = smaller(block.columns * s.wide, p.ow - block.x) - s.wide;  // where the last wide pixel starts
  if (s.source_rows > 0) {
    const int64_t rows = (block.rows - 1) * p.sh + (p.kh - 1) * p.dh + 1;
    for (int64_t r = 0; r < rows; r++)
      copy_row(p, image, top + r, left, (last + s.wide - 1) * p.sw + p.kw, at.copies + r * s.pitch);
  }
  int64_t i = 0;
  for (int64_t oy = 0; oy < block.rows; oy++) {
    float* y = args.y + block.n * p.y_image + (block.y + oy) * p.y_row + block.x * p.y_pixel;
    const float* residual = args.residual + block.n * p.r_image + (block.y + oy) * p.r_row + block.x * p.r_pixel;
    const float* row = s.direct ? image + (top + oy * p.sh) * p.x_row + left * p.ic : at.copies + oy * p.sh * s.pitch;
    for (int64_t column = 0; column < block.columns; column++, i++) {
      // A wide pixel that would reach over the end of the row overlaps its neighbour, and computes the same again.
      const int64_t ox = smaller(column * s.wide, last);
      at.outputs[i] = y + ox * p.y_pixel;
      if (args.residual != nullptr) at.residuals[i] = residual + ox * p.r_pixel;
      if (s.mode == ConvMode::rows) {
        at.inputs[i] = row + ox * p.sw * p.ic;
        continue;
      }
      const int64_t iy = top + oy * p.sh, ix = left + ox * p.sw;
      const float** to = at.inputs + i;
      for (int64_t ky = 0; ky < p.kh; ky++) {
        const int64_t yy = iy + ky * p.dh;
        for (int64_t kx = 0; kx < p.kw; kx++, to += s.pixels) {
          const int64_t xx = ix + kx * p.dw;
          const bool inside = yy >= 0 && yy < p.ih && xx >= 0 && xx < p.iw;
          *to = inside ? image + yy * p.x_row + xx * p.x_pixel : at.zeros;
        }
      }
    }
  }
}

/// Lanes share the blocks where there are enough, else the groups of output channels.
ZOI_INLINE bool by_blocks(const ConvShape& s) { return s.blocks >= 4; }
ZOI_INLINE int64_t conv_slices(const ConvProblem& p) {
  const ConvShape s = shape_of(p);
  return by_blocks(s) ? s.blocks : p.groups * columns_of(s.oc).groups;
}

ZOI_INLINE void conv(const ConvArgs& args, Lane lane) {
  const ConvProblem& p = args.problem;
  const ConvShape s = shape_of(p);
  const ConvScratch at = split_scratch(lane.scratch, p, s);
  if (s.mode == ConvMode::taps) zero_floats(at.zeros, p.ic);
  const Columns columns = columns_of(s.oc);
  Range blocks = {0, s.blocks}, parts = {0, p.groups * columns.groups};
  (by_blocks(s) ? blocks : parts) = lane_range(conv_slices(p), lane);
  const bool clamp = is_clamp(p.act), after = p.residual_after != 0 && args.residual != nullptr;
  Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  const int64_t packed_group = packed_floats(s.depth, s.oc);

  for (int64_t b = blocks.begin; b < blocks.end; b++) {
    const ConvBlock block = block_at(p, s, b);
    const int64_t count = block.rows * block.columns;
    int64_t prepared = -1;
    for (int64_t part = parts.begin; part < parts.end; part++) {
      const int64_t g = part / columns.groups, cg = part % columns.groups;
      if (g != prepared) prepare_block(args, s, at, block, g * p.ic);
      prepared = g;
      const int vectors = group_vectors(columns, cg);
      const int64_t width = smaller(s.oc - cg * 2 * kWidth, vectors * kWidth);
      const int last = static_cast<int>(width - (vectors - 1) * kWidth);
      const int64_t column = g * p.oc + cg * 2 * kWidth;  // wide pixels are of one group
      e.bias = args.bias == nullptr ? nullptr : args.bias + column;
      ConvTile t;
      t.stride = s.mode == ConvMode::taps ? s.pixels : 0;
      t.step = s.mode != ConvMode::rows ? 0 : p.dh * (s.direct ? p.x_row : s.pitch);
      t.sums = s.sums;
      t.length = s.length;
      t.w = args.w + g * packed_group + group_offset(s.depth, cg);
      t.act = clamp ? static_cast<int64_t>(kActNone) : p.act;
      t.p0 = static_cast<float>(p.act_p0);
      t.p1 = static_cast<float>(p.act_p1);
      t.after = after;
      t.columns = width;
      for (int64_t i = 0; i < count;) {
        const int64_t rows = next_rows(count - i, tile_rows(vectors));
        t.inputs = at.inputs + i;
        t.outputs = at.outputs + i;
        t.residuals = args.residual == nullptr ? nullptr : at.residuals + i;
        with_tile(rows, vectors, [&]<int MR, int NV>() { conv_tile<MR, NV>(t, e, column, last); });
        i += rows;
      }
    }
  }
}

/// The weights, and the bias once for each of the pixels that are made one.
ZOI_INLINE int64_t conv_packed_bytes(const ConvProblem& p, int operand) {
  const ConvShape s = shape_of(p);
  if (operand == kConvBias) return s.wide > 1 ? s.oc * 4 : 0;
  return operand == kConvW ? p.groups * packed_floats(s.depth, s.oc) * 4 : 0;
}
/// Plain [groups*oc][ic][kh][kw] into groups of [kh][kw][ic][NV * W].
ZOI_INLINE void conv_pack(const ConvProblem& p, int operand, const float* plain, float* packed) {
  const ConvShape s = shape_of(p);
  if (operand == kConvBias) {
    for (int64_t o = 0; o < s.oc; o++) packed[o] = plain[o % p.oc];
    return;
  }
  const Columns columns = columns_of(s.oc);
  for (int64_t g = 0; g < p.groups; g++, packed += packed_floats(s.depth, s.oc))
    for (int64_t cg = 0; cg < columns.groups; cg++) {
      const int64_t width = group_vectors(columns, cg) * kWidth;
      float* to = packed + group_offset(s.depth, cg);
      for (int64_t j = 0; j < width; j++) {
        const int64_t o = cg * 2 * kWidth + j, pixel = o / p.oc;
        const float* from = plain + (g * p.oc + o % p.oc) * p.ic * p.kh * p.kw;
        for (int64_t ky = 0; ky < p.kh; ky++)
          for (int64_t kx = 0; kx < s.kw; kx++) {
            const int64_t tap = kx - pixel * p.sw;
            const bool zero_tap = o >= s.oc || tap < 0 || tap >= p.kw;
            for (int64_t c = 0; c < p.ic; c++)
              to[((ky * s.kw + kx) * p.ic + c) * width + j] = zero_tap ? 0.0f : from[(c * p.kh + ky) * p.kw + tap];
          }
      }
    }
}
/// Core cycles: sums, weights from beyond L2, and the rest of a tile.
ZOI_INLINE double conv_cost(const ConvProblem& p) {
  const ConvShape s = shape_of(p);
  const double vectors = static_cast<double>(columns_of(s.oc).vectors * p.groups), depth = static_cast<double>(s.depth);
  const double pixels = static_cast<double>(p.n * p.oh * parts_of(p.ow, s.wide)), bytes = depth * vectors * kWidth * 4;
  return pixels * vectors * (depth * kWidth / 16 * 1.06 + 3) + pixels * depth / 16 +
         static_cast<double>(s.blocks) * bytes / (bytes > 786432 ? 6 : 64);
}

}  // namespace zoi::ZOI_ISA
