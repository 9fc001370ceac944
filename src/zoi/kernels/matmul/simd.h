// matmul in float32 vectors. With few rows and contiguous rows of b, b is read where it lies; otherwise each matrix of
// b is packed into lane scratch once (simd/tile.h) and serves all rows of a. Columns of a that are not contiguous are
// gathered, a tile's rows at a time.
#pragma once

#include "matmul.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kRowsPerSlice = 48;
inline constexpr int64_t kFewRows = 2;

ZOI_INLINE bool reads_in_place(const MatmulProblem& p) { return p.b_col == 1 && p.m <= kFewRows && p.n >= kWidth; }
ZOI_INLINE int64_t matmul_parts(const MatmulProblem& p) { return (p.m + kRowsPerSlice - 1) / kRowsPerSlice; }
ZOI_INLINE int64_t matmul_slices(const MatmulProblem& p) { return p.batch0 * p.batch1 * matmul_parts(p); }
ZOI_INLINE int64_t matmul_scratch(const MatmulProblem& p) {
  const int64_t rows = p.a_col == 1 ? 0 : kTileRows<1> * p.k * 4 + 64;
  return rows + (reads_in_place(p) ? 0 : packed_floats(p.k, p.n) * 4);
}

struct MatmulTile {
  const float* rows[kTileRows<1>];
  float* out[kTileRows<1>];
  const float* add[kTileRows<1>];
  const float* b;
  int64_t step, k, columns;
  bool has_add;
};

template <int MR, int NV>
[[gnu::noinline]] static void matmul_tile(const MatmulProblem& p, const MatmulTile& t, const Epilogue& e, int last) {
  constexpr int U = kUnroll<MR, NV>;
  const float* rows[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++) rows[i] = t.rows[i];
  V acc[U][MR][NV];
  clear(acc);
  multiply<MR, NV, U>(acc, rows, t.b, t.step, t.k);
  const auto add = [&](int i) __attribute__((always_inline)) { return t.add[i]; };
  const auto out = [&](int i) __attribute__((always_inline)) { return t.out[i]; };
  finish(acc, e, t.has_add, add, out, last);
  if (!is_clamp(p.act))
    activate_rows(t.out, nullptr, MR, t.columns, p.act, static_cast<float>(p.act_p0), static_cast<float>(p.act_p1));
}

/// Columns [column, column + vectors * W) for rows [begin, end) of one matrix.
ZOI_INLINE void matmul_rows(const MatmulArgs& args, const Epilogue& e, const float* a, const float* add, float* c,
                            float* gathered, Range range, const float* b, int64_t step, int64_t column, int vectors) {
  const MatmulProblem& p = args.problem;
  MatmulTile t;
  float spread[kTileRows<1>][3 * kWidth];
  t.b = b;
  t.step = step;
  t.k = p.k;
  t.has_add = add != nullptr;
  t.columns = p.n - column < vectors * kWidth ? p.n - column : vectors * kWidth;
  const int last = static_cast<int>(t.columns - (vectors - 1) * kWidth);
  for (int64_t i = range.begin; i < range.end;) {
    const int64_t count = next_rows(range.end - i, tile_rows(vectors));
    for (int64_t r = 0; r < count; r++) {
      t.rows[r] = a + (i + r) * p.a_row;
      t.out[r] = c + (i + r) * p.c_row + column;
      t.add[r] = add == nullptr ? nullptr : add + (i + r) * p.d_row + column;
      if (add != nullptr && p.d_col == 0) {
        for (int64_t j = 0; j < t.columns; j++) spread[r][j] = add[(i + r) * p.d_row];
        t.add[r] = spread[r];
      }
      if (p.a_col != 1) {
        float* to = gathered + r * p.k;
        for (int64_t k = 0; k < p.k; k++) to[k] = t.rows[r][k * p.a_col];
        t.rows[r] = to;
      }
    }
    with_tile(count, vectors, [&]<int MR, int NV>() { matmul_tile<MR, NV>(p, t, e, last); });
    i += count;
  }
}

ZOI_INLINE void matmul(const MatmulArgs& args, Lane lane) {
  const MatmulProblem& p = args.problem;
  Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  e.alpha = static_cast<float>(p.alpha);
  const int64_t parts = matmul_parts(p);
  const Range range = lane_range(matmul_slices(p), lane);
  const bool in_place = reads_in_place(p);
  auto* packed = reinterpret_cast<float*>(lane.scratch);
  float* gathered = packed + (in_place ? 0 : packed_floats(p.k, p.n));
  const Columns columns = columns_of(p.n);
  int64_t ready = -1;
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t matrix = slice / parts, h = matrix % p.batch1, o = matrix / p.batch1;
    const int64_t begin = slice % parts * kRowsPerSlice;
    const Range rows = {begin, begin + kRowsPerSlice < p.m ? begin + kRowsPerSlice : p.m};
    const float* a = args.a + o * p.a_batch0 + h * p.a_batch1;
    const float* b = args.b + o * p.b_batch0 + h * p.b_batch1;
    const float* add = args.add == nullptr ? nullptr : args.add + o * p.d_batch0 + h * p.d_batch1;
    float* c = args.c + o * p.c_batch0 + h * p.c_batch1;
    if (in_place) {
      // Whole vectors of columns only; the last one overlaps its neighbour, and writes the same values again.
      for (int64_t j = 0; j < p.n; j += kWidth) {
        const int64_t at = j + kWidth <= p.n ? j : p.n - kWidth;
        if (j + 2 * kWidth <= p.n) {
          matmul_rows(args, e, a, add, c, gathered, rows, b + j, p.b_row, j, 2);
          j += kWidth;
        } else {
          matmul_rows(args, e, a, add, c, gathered, rows, b + at, p.b_row, at, 1);
        }
      }
      continue;
    }
    if (matrix != ready) pack_columns(b, p.b_row, p.b_col, p.k, p.n, packed);
    ready = matrix;
    for (int64_t g = 0; g < columns.groups; g++) {
      const int vectors = group_vectors(columns, g);
      matmul_rows(args, e, a, add, c, gathered, rows, packed + group_offset(p.k, g), vectors * kWidth, g * 2 * kWidth,
                  vectors);
    }
  }
}

ZOI_INLINE double matmul_cost(const MatmulProblem& p) {
  const double matrices = static_cast<double>(p.batch0 * p.batch1), k = static_cast<double>(p.k);
  const double lanes = static_cast<double>(columns_of(p.n).vectors) * kWidth;
  return matrices * k * lanes * (static_cast<double>(p.m) * 1.1 / 16 + (reads_in_place(p) ? 0.1 : 1.0));
}

}  // namespace zoi::ZOI_ISA
