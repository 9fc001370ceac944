// 3x3 stride-1 convolution by minimal filtering, float32 vectors: F(4x4, 3x3) with 4 times and F(2x2, 3x3) with 2.25
// times fewer multiplications than direct (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
//   y = A^T [ (G w G^T) . (B^T x B) ] A   for tiles of F x F outputs and (F + 2) x (F + 2) inputs
// The product over channels is one gemm for each of the (F + 2)^2 transformed elements. A block of tiles is transformed
// into lane scratch [element][tile][ic]; then for each group of output channels all elements are multiplied and the
// results transformed back while they are in L1. Weights are transformed when packed: [group][element][ic][NV * W].
// Error against direct summation, relative to the largest output: below 2e-5 for F = 4 and 2e-6 for F = 2 (tested).
// An infinity or NaN in the input reaches all outputs of the tiles that read it.
#pragma once

#include "conv.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kL2Floats = int64_t{1} << 17;

template <int F>
struct Winograd {
  static constexpr int kSide = F + 2, kElements = kSide * kSide;
};

// One-dimensional transforms, in place over a stride-1 array of vectors.
template <int F>
ZOI_INLINE void input_transform(const V* d, V* t) {
  if constexpr (F == 2) {
    t[0] = sub(d[0], d[2]);
    t[1] = add(d[1], d[2]);
    t[2] = sub(d[2], d[1]);
    t[3] = sub(d[1], d[3]);
  } else {
    const V two = set1(2.0f), four = set1(4.0f), five = set1(5.0f);
    const V even = fnma(four, d[2], d[4]), odd = fnma(four, d[1], d[3]);
    const V near = sub(d[4], d[2]), far = mul(two, sub(d[3], d[1]));
    t[0] = fma(four, d[0], fnma(five, d[2], d[4]));
    t[1] = add(even, odd);
    t[2] = sub(even, odd);
    t[3] = add(near, far);
    t[4] = sub(near, far);
    t[5] = fma(four, d[1], fnma(five, d[3], d[5]));
  }
}
template <int F>
ZOI_INLINE void output_transform(const V* m, V* y) {
  if constexpr (F == 2) {
    y[0] = add(add(m[0], m[1]), m[2]);
    y[1] = sub(sub(m[1], m[2]), m[3]);
  } else {
    const V s = add(m[1], m[2]), d = sub(m[1], m[2]), t = add(m[3], m[4]), e = sub(m[3], m[4]);
    y[0] = add(add(m[0], s), t);
    y[1] = fma(set1(2.0f), e, d);
    y[2] = fma(set1(4.0f), t, s);
    y[3] = add(fma(set1(8.0f), e, d), m[5]);
  }
}
/// G g for one row or column of a filter, in double.
template <int F>
ZOI_INLINE void filter_transform(const double* g, double* u) {
  if constexpr (F == 2) {
    u[0] = g[0];
    u[1] = (g[0] + g[1] + g[2]) / 2;
    u[2] = (g[0] - g[1] + g[2]) / 2;
    u[3] = g[2];
  } else {
    u[0] = g[0] / 4;
    u[1] = -(g[0] + g[1] + g[2]) / 6;
    u[2] = -(g[0] - g[1] + g[2]) / 6;
    u[3] = g[0] / 24 + g[1] / 12 + g[2] / 6;
    u[4] = g[0] / 24 - g[1] / 12 + g[2] / 6;
    u[5] = g[2];
  }
}

struct WinogradShape {
  int64_t tile_rows, tile_columns, tiles;  // tiles of all images
  int64_t block, blocks;                   // tiles of a block
};
template <int F>
ZOI_INLINE WinogradShape winograd_shape(const ConvProblem& p) {
  WinogradShape s;
  s.tile_rows = parts_of(p.oh, F);
  s.tile_columns = parts_of(p.ow, F);
  s.tiles = p.n * s.tile_rows * s.tile_columns;
  // Half of a usual L2 for the transformed input, or all of it where each block streams the weights from beyond L2.
  const int64_t floats = Winograd<F>::kElements * p.ic * p.oc > kL2Floats ? 2 * kL2Floats : kL2Floats;
  const int64_t most = floats / (Winograd<F>::kElements * p.ic);
  s.block = most < 12 ? 12 : most > 96 ? 96 : most / 12 * 12;
  s.blocks = parts_of(s.tiles, s.block);
  return s;
}
/// Floats between elements of `tiles` tiles of `width` floats: one cache line more than they need, so that the elements
/// of a tile do not fight for one set of the cache.
ZOI_INLINE int64_t element_stride(int64_t tiles, int64_t width) { return tiles * width + 16; }
template <int F>
ZOI_INLINE int64_t winograd_scratch(const ConvProblem& p) {
  const int64_t block = smaller(winograd_shape<F>(p).block, winograd_shape<F>(p).tiles);
  return Winograd<F>::kElements * (element_stride(block, p.ic) + element_stride(block, 3 * kWidth)) * 4;
}

/// Transforms one tile's inputs at (y, x) into to[element * stride + channel].
template <int F>
ZOI_INLINE void transform_tile(const ConvProblem& p, const float* image, int64_t y, int64_t x, float* to,
                               int64_t stride) {
  constexpr int S = Winograd<F>::kSide;
  const bool whole = y >= 0 && x >= 0 && y + S <= p.ih && x + S <= p.iw;
  for (int64_t c = 0; c < p.ic; c += kWidth) {
    const M lanes = first(static_cast<int>(smaller(p.ic - c, kWidth)));
    V rows[S][S], columns[S][S], out[S];
    for (int i = 0; i < S; i++) {
      V d[S];
      const float* from = image + (y + i) * p.x_row + x * p.x_pixel + c;
      if (whole && p.ic - c >= kWidth) {
#pragma GCC unroll 8
        for (int j = 0; j < S; j++) d[j] = load(from + j * p.x_pixel);
      } else {
        for (int j = 0; j < S; j++) {
          const bool inside = y + i >= 0 && y + i < p.ih && x + j >= 0 && x + j < p.iw;
          d[j] = inside ? load(from + j * p.x_pixel, lanes) : zero();
        }
      }
      input_transform<F>(d, rows[i]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < S; j++)
#pragma GCC unroll 8
      for (int i = 0; i < S; i++) columns[j][i] = rows[i][j];
    for (int j = 0; j < S; j++) {
      input_transform<F>(columns[j], out);
      float* at = to + j * stride + c;
      if (p.ic - c >= kWidth) {
#pragma GCC unroll 8
        for (int i = 0; i < S; i++) store(at + i * S * stride, out[i]);
      } else {
        for (int i = 0; i < S; i++) store(at + i * S * stride, out[i], lanes);
      }
    }
  }
}

/// products[t][NV * W] = inputs[t][ic] times ic rows of w, for MR tiles.
template <int MR, int NV>
[[gnu::noinline]] static void winograd_product(const float* inputs, int64_t ic, const float* w, float* products) {
  constexpr int U = kUnroll<MR, NV>;
  const float* rows[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++) rows[i] = inputs + i * ic;
  V acc[U][MR][NV];
  clear(acc);
  multiply<MR, NV, U>(acc, rows, w, NV * kWidth, ic);
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) {
      V sum = acc[0][i][v];
#pragma GCC unroll 8
      for (int u = 1; u < U; u++) sum = add(sum, acc[u][i][v]);
      store(products + (i * NV + v) * kWidth, sum);
    }
}

/// One vector of output channels of one tile: products[element * stride] -> F x F outputs inside the image.
template <int F>
ZOI_INLINE void untransform_tile(const ConvArgs& args, const Epilogue& e, const float* products, int64_t stride,
                                 int64_t n, int64_t y, int64_t x, int64_t column, int count) {
  const M lanes = first(count);
  constexpr int S = Winograd<F>::kSide;
  const ConvProblem& p = args.problem;
  V rows[S][F];
  for (int i = 0; i < S; i++) {
    V m[S];
#pragma GCC unroll 8
    for (int j = 0; j < S; j++) m[j] = load(products + (i * S + j) * stride);
    output_transform<F>(m, rows[i]);
  }
  const V bias = args.bias == nullptr ? zero() : load(args.bias + column, lanes);
  const V low = set1(e.low), high = set1(e.high);
  const int64_t height = smaller(F, p.oh - y), width = smaller(F, p.ow - x);
  float* to = args.y + n * p.y_image + y * p.y_row + x * p.y_pixel + column;
  const float* residual = args.residual + n * p.r_image + y * p.r_row + x * p.r_pixel + column;
  for (int j = 0; j < width; j++) {
    V m[S], out[F];
#pragma GCC unroll 8
    for (int i = 0; i < S; i++) m[i] = rows[i][j];
    output_transform<F>(m, out);
    for (int i = 0; i < height; i++) {
      V v = add(out[i], bias);
      if (args.residual != nullptr) v = add(v, load(residual + i * p.r_row + j * p.r_pixel, lanes));
      v = e.swish ? mul(v, min_second(high, max_second(low, fma(v, set1(e.slope), set1(e.offset)))))
                  : min_second(high, max_second(low, v));
      if (count == kWidth)
        store(to + i * p.y_row + j * p.y_pixel, v);
      else
        store_first(to + i * p.y_row + j * p.y_pixel, v, count);
    }
  }
}

/// Lanes share the blocks of tiles where there are enough, else the groups of output channels.
template <int F>
ZOI_INLINE int64_t winograd_slices(const ConvProblem& p) {
  const WinogradShape s = winograd_shape<F>(p);
  return s.blocks >= 4 ? s.blocks : columns_of(p.oc).groups;
}

template <int F>
ZOI_INLINE void winograd(const ConvArgs& args, Lane lane) {
  constexpr int E = Winograd<F>::kElements;
  const ConvProblem& p = args.problem;
  const WinogradShape s = winograd_shape<F>(p);
  const Columns columns = columns_of(p.oc);
  Range blocks = {0, s.blocks}, groups = {0, columns.groups};
  (s.blocks >= 4 ? blocks : groups) = lane_range(winograd_slices<F>(p), lane);
  const Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  auto* inputs = reinterpret_cast<float*>(lane.scratch);
  float* products = inputs + E * element_stride(smaller(s.block, s.tiles), p.ic);

  for (int64_t b = blocks.begin; b < blocks.end; b++) {
    const int64_t begin = b * s.block, count = smaller(s.block, s.tiles - begin);
    const auto position = [&](int64_t t, int64_t& n, int64_t& y, int64_t& x) __attribute__((always_inline)) {
      x = (begin + t) % s.tile_columns * F;
      y = (begin + t) / s.tile_columns % s.tile_rows * F;
      n = (begin + t) / s.tile_columns / s.tile_rows;
    };
    const int64_t input_stride = element_stride(count, p.ic);
    int64_t n, y, x;
    for (int64_t t = 0; t < count; t++) {
      position(t, n, y, x);
      transform_tile<F>(p, args.x + n * p.x_image, y - p.pt, x - p.pl, inputs + t * p.ic, input_stride);
    }
    for (int64_t g = groups.begin; g < groups.end; g++) {
      const int vectors = group_vectors(columns, g);
      const int64_t row = vectors * kWidth, product_stride = element_stride(count, row);
      const float* w = args.w + g * 2 * kWidth * E * p.ic;
      for (int64_t element = 0; element < E; element++, w += p.ic * row)
        for (int64_t t = 0; t < count;) {
          const int64_t rows = next_rows(count - t, tile_rows(vectors));
          with_tile(rows, vectors, [&]<int MR, int NV>() {
            winograd_product<MR, NV>(inputs + element * input_stride + t * p.ic, p.ic, w,
                                     products + element * product_stride + t * row);
          });
          t += rows;
        }
      for (int64_t t = 0; t < count; t++) {
        position(t, n, y, x);
        for (int v = 0; v < vectors; v++) {
          const int64_t column = g * 2 * kWidth + v * kWidth;
          const int lanes = static_cast<int>(smaller(p.oc - column, kWidth));
          untransform_tile<F>(args, e, products + t * row + v * kWidth, product_stride, n, y, x, column, lanes);
        }
      }
    }
  }
}

template <int F>
ZOI_INLINE int64_t winograd_packed_bytes(const ConvProblem& p) {
  return packed_floats(Winograd<F>::kElements * p.ic, p.oc) * 4;
}
template <int F>
ZOI_INLINE void winograd_pack(const ConvProblem& p, const float* plain, float* packed) {
  constexpr int S = Winograd<F>::kSide, E = S * S;
  const Columns columns = columns_of(p.oc);
  for (int64_t g = 0; g < columns.groups; g++) {
    const int64_t width = group_vectors(columns, g) * kWidth;
    float* to = packed + g * 2 * kWidth * E * p.ic;
    for (int64_t j = 0; j < width; j++)
      for (int64_t c = 0; c < p.ic; c++) {
        const int64_t o = g * 2 * kWidth + j;
        double rows[3][S], u[S];
        for (int i = 0; i < 3; i++) {
          double filter[3];
          for (int k = 0; k < 3; k++) filter[k] = o < p.oc ? plain[((o * p.ic + c) * 3 + i) * 3 + k] : 0.0;
          filter_transform<F>(filter, rows[i]);
        }
        for (int k = 0; k < S; k++) {
          const double column[3] = {rows[0][k], rows[1][k], rows[2][k]};
          filter_transform<F>(column, u);
          for (int i = 0; i < S; i++) to[((i * S + k) * p.ic + c) * width + j] = static_cast<float>(u[i]);
        }
      }
  }
}

/// Core cycles, for choosing between the algorithms: products, transforms, and weights from beyond L2.
template <int F>
ZOI_INLINE double winograd_cost(const ConvProblem& p) {
  const WinogradShape s = winograd_shape<F>(p);
  const double tiles = static_cast<double>(s.tiles), ic = static_cast<double>(p.ic);
  const double oc = static_cast<double>(columns_of(p.oc).vectors * kWidth), elements = Winograd<F>::kElements;
  const double transforms = (F == 4 ? 150 : 55) * (static_cast<double>(parts_of(p.ic, kWidth)) + oc / kWidth);
  const double bytes = elements * ic * oc * 4;
  return tiles * (elements * ic * oc / 16 * 1.15 + transforms) +
         static_cast<double>(s.blocks) * bytes / (bytes > 786432 ? 6 : 64);
}
ZOI_INLINE bool winograd_applies(const ConvProblem& p) {
  return p.kh == 3 && p.kw == 3 && p.sh == 1 && p.sw == 1 && p.dh == 1 && p.dw == 1 && p.groups == 1 &&
         p.ic >= kWidth && p.oc >= kWidth && is_clamp(p.act) && !p.residual_after && p.n * p.oh * p.ow > 0;
}

}  // namespace zoi::ZOI_ISA
