// Direct convolution in float32 vectors, over blocks of output pixels in image order, whatever rows they lie in.
//
// For each pixel of a block and each tap of the kernel, lane scratch holds a pointer to ic input channels: the pixel
// itself, or zeros outside the image. A register tile (simd/tile.h) then sums over taps and channels for MR pixels and
// NV vectors of output channels, and the pointers serve all groups of output channels. With few input channels the
// block's patches are copied out instead, and all taps become one long sum.
// Weights are packed as groups of [kh][kw][ic][NV * W].
#pragma once

#include "conv.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kFewChannels = 8;         // below which patches are copied
inline constexpr int64_t kPatchFloats = 6144;      // of one block
inline constexpr int64_t kBlockPointers = 2048;    // of one block
inline constexpr int64_t kMostPixels = 192;

struct ConvShape {
  int64_t taps, depth;  // depth: terms of one output element
  bool patches;
  int64_t sums, length;  // a tile sums `sums` times over `length` terms
  int64_t block;         // pixels
  int64_t pitch;         // floats between patches
  int64_t pixels, blocks;
};
ZOI_INLINE ConvShape shape_of(const ConvProblem& p) {
  ConvShape s;
  s.taps = p.kh * p.kw;
  s.depth = s.taps * p.ic;
  s.patches = p.ic < kFewChannels && s.taps > 1;
  s.sums = s.patches ? 1 : s.taps;
  s.length = s.patches ? s.depth : p.ic;
  s.pitch = s.depth + kWidth;
  const int64_t fits = s.patches ? kPatchFloats / s.pitch : kBlockPointers / s.taps;
  s.block = fits > kMostPixels ? kMostPixels : fits < 12 ? 12 : fits / 12 * 12;
  s.pixels = p.n * p.oh * p.ow;
  s.blocks = (s.pixels + s.block - 1) / s.block;
  return s;
}

/// Lane scratch: zeros, pointers to inputs [sums][block], outputs and residuals [block], patches [block][pitch].
struct ConvScratch {
  float* zeros;
  const float** inputs;
  float** outputs;
  const float** residuals;
  float* patches;
};
ZOI_INLINE int64_t conv_scratch(const ConvProblem& p, const ConvShape& s) {
  return p.ic * 4 + 64 + (s.sums + 2) * s.block * 8 + (s.patches ? s.block * s.pitch * 4 : 0);
}
ZOI_INLINE ConvScratch split_scratch(std::byte* memory, const ConvProblem& p, const ConvShape& s) {
  ConvScratch at;
  at.zeros = reinterpret_cast<float*>(memory);
  memory += (p.ic * 4 + 63) / 64 * 64;
  at.inputs = reinterpret_cast<const float**>(memory);
  at.outputs = reinterpret_cast<float**>(memory + s.sums * s.block * 8);
  at.residuals = reinterpret_cast<const float**>(memory + (s.sums + 1) * s.block * 8);
  at.patches = reinterpret_cast<float*>(memory + (s.sums + 2) * s.block * 8);
  return at;
}

struct ConvTile {
  const float* const* inputs;
  int64_t stride;  // pointers between sums
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
[[gnu::noinline]] static void conv_tile(const ConvTile& t, const Epilogue& e, int64_t column, M last) {
  constexpr int U = kUnroll<MR, NV>;
  V acc[U][MR][NV];
  clear(acc);
  const float* w = t.w;
  const float* const* inputs = t.inputs;
  for (int64_t s = 0; s < t.sums; s++) {
    const float* rows[MR];
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++) rows[i] = inputs[i];
    multiply<MR, NV, U>(acc, rows, w, NV * kWidth, t.length);
    w += t.length * NV * kWidth;
    inputs += t.stride;
  }
  float* out[MR];
  const float* residual[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++) {
    out[i] = t.outputs[i] + column;
    residual[i] = t.residuals == nullptr ? nullptr : t.residuals[i] + column;
  }
  finish(acc, e, t.residuals == nullptr || t.after ? nullptr : residual, out, last);
  if (t.act != kActNone || t.after)
    activate_rows(out, t.after ? residual : nullptr, MR, t.columns, t.act, t.p0, t.p1);
}

/// One patch of few channels: rows of the window copied whole where they lie inside the image.
ZOI_INLINE void copy_patch(const ConvProblem& p, const float* image, int64_t y, int64_t x, float* to) {
  const bool whole = p.dw == 1 && p.x_pixel == p.ic && x >= 0 && x + p.kw <= p.iw;
  const int64_t run = p.kw * p.ic;
  for (int64_t ky = 0; ky < p.kh; ky++, to += run) {
    const int64_t iy = y + ky * p.dh;
    if (iy < 0 || iy >= p.ih) {
      for (int64_t i = 0; i < run; i += kWidth) store(to + i, zero());
    } else if (whole) {
      const float* from = image + iy * p.x_row + x * p.x_pixel;
      int64_t i = 0;
      for (; i + kWidth <= run; i += kWidth) store(to + i, load(from + i));
      if (i < run) store(to + i, load(from + i, first(static_cast<int>(run - i))));
    } else {
      for (int64_t kx = 0; kx < p.kw; kx++) {
        const int64_t ix = x + kx * p.dw;
        const float* from = image + iy * p.x_row + ix * p.x_pixel;
        for (int64_t c = 0; c < p.ic; c++) to[kx * p.ic + c] = ix < 0 || ix >= p.iw ? 0.0f : from[c];
      }
    }
  }
}

/// Pointers (or patches) of `count` pixels from `begin`, for input channels from `channel`.
[[gnu::noinline, maybe_unused]] static void prepare_block(const ConvArgs& args, const ConvShape& s,
                                                          const ConvScratch& at, int64_t begin, int64_t count,
                                                          int64_t channel) {
  const ConvProblem& p = args.problem;
  int64_t ox = begin % p.ow, oy = begin / p.ow % p.oh, n = begin / p.ow / p.oh;
  for (int64_t i = 0; i < count; i++) {
    const float* image = args.x + n * p.x_image + channel;
    const int64_t y = oy * p.sh - p.pt, x = ox * p.sw - p.pl;
    at.outputs[i] = args.y + n * p.y_image + oy * p.y_row + ox * p.y_pixel;
    if (args.residual != nullptr) at.residuals[i] = args.residual + n * p.r_image + oy * p.r_row + ox * p.r_pixel;
    if (s.patches) {
      at.inputs[i] = at.patches + i * s.pitch;
      copy_patch(p, image, y, x, at.patches + i * s.pitch);
    } else {
      const float** to = at.inputs + i;
      for (int64_t ky = 0; ky < p.kh; ky++) {
        const int64_t iy = y + ky * p.dh;
        const bool row = iy >= 0 && iy < p.ih;
        const float* from = image + iy * p.x_row + x * p.x_pixel;
        for (int64_t kx = 0; kx < p.kw; kx++, to += s.block) {
          const int64_t ix = x + kx * p.dw;
          *to = row && ix >= 0 && ix < p.iw ? from + kx * p.dw * p.x_pixel : at.zeros;
        }
      }
    }
    if (++ox == p.ow) {
      ox = 0;
      if (++oy == p.oh) oy = 0, n++;
    }
  }
}

/// Lanes share the blocks where there are enough, else the groups of output channels.
ZOI_INLINE bool by_blocks(const ConvShape& s) { return s.blocks >= 4; }
ZOI_INLINE int64_t conv_slices(const ConvProblem& p) {
  const ConvShape s = shape_of(p);
  return by_blocks(s) ? s.blocks : p.groups * columns_of(p.oc).groups;
}

ZOI_INLINE void conv(const ConvArgs& args, Lane lane) {
  const ConvProblem& p = args.problem;
  const ConvShape s = shape_of(p);
  const ConvScratch at = split_scratch(lane.scratch, p, s);
  for (int64_t c = 0; c < p.ic; c++) at.zeros[c] = 0.0f;
  const Columns columns = columns_of(p.oc);
  Range blocks = {0, s.blocks}, parts = {0, p.groups * columns.groups};
  (by_blocks(s) ? blocks : parts) = lane_range(conv_slices(p), lane);
  const bool clamp = is_clamp(p.act), after = p.residual_after != 0 && args.residual != nullptr;
  Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  const int64_t packed_group = packed_floats(s.depth, p.oc);

  for (int64_t b = blocks.begin; b < blocks.end; b++) {
    const int64_t begin = b * s.block, count = s.pixels - begin < s.block ? s.pixels - begin : s.block;
    int64_t prepared = -1;
    for (int64_t part = parts.begin; part < parts.end; part++) {
      const int64_t g = part / columns.groups, cg = part % columns.groups;
      if (g != prepared) prepare_block(args, s, at, begin, count, g * p.ic);
      prepared = g;
      const int vectors = group_vectors(columns, cg);
      const int64_t left = p.oc - cg * 2 * kWidth, width = left < vectors * kWidth ? left : vectors * kWidth;
      const M last = first(static_cast<int>(width - (vectors - 1) * kWidth));
      const int64_t column = g * p.oc + cg * 2 * kWidth;
      e.bias = args.bias == nullptr ? nullptr : args.bias + column;
      ConvTile t = {nullptr, s.block, s.sums, s.length, args.w + g * packed_group + group_offset(s.depth, cg), nullptr,
                    nullptr, clamp ? static_cast<int64_t>(kActNone) : p.act, static_cast<float>(p.act_p0),
                    static_cast<float>(p.act_p1), after, width};
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

ZOI_INLINE int64_t conv_packed_bytes(const ConvProblem& p) {
  return p.groups * packed_floats(p.kh * p.kw * p.ic, p.oc) * 4;
}
/// Plain [groups*oc][ic][kh][kw] into groups of [kh][kw][ic][NV * W].
ZOI_INLINE void conv_pack(const ConvProblem& p, const float* plain, float* packed) {
  const Columns columns = columns_of(p.oc);
  const int64_t taps = p.kh * p.kw, depth = taps * p.ic;
  for (int64_t g = 0; g < p.groups; g++, packed += packed_floats(depth, p.oc))
    for (int64_t cg = 0; cg < columns.groups; cg++) {
      const int64_t width = group_vectors(columns, cg) * kWidth;
      float* to = packed + group_offset(depth, cg);
      for (int64_t j = 0; j < width; j++) {
        const int64_t o = cg * 2 * kWidth + j;
        const float* from = plain + (g * p.oc + o) * depth;
        for (int64_t c = 0; c < p.ic; c++)
          for (int64_t t = 0; t < taps; t++) to[(t * p.ic + c) * width + j] = o < p.oc ? from[c * taps + t] : 0.0f;
      }
    }
}
ZOI_INLINE double conv_cost(const ConvProblem& p) {
  const double lanes = static_cast<double>(columns_of(p.oc).vectors) * kWidth / 16;
  return static_cast<double>(p.n * p.oh * p.ow) * static_cast<double>(p.groups) *
         (static_cast<double>(p.kh * p.kw * p.ic) * lanes * 1.1 + static_cast<double>(p.kh * p.kw) * 4);
}

}  // namespace zoi::ZOI_ISA
