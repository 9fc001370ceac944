// The register tile that gemm, conv and matmul share: MR rows of A times NV vectors of columns of B.
//
// B is packed in groups of vectors: [group][k][NV * W], columns padded with zeros to whole vectors. All groups are two
// vectors wide, but the last of an odd count, which takes three (or one if there is only one vector): then every tile
// has enough independent sums to hide the latency of a fused multiply-add, whatever n is.
#pragma once

namespace zoi::ZOI_ISA {

/// Rows of a full tile of NV vectors: as many sums as registers allow, beside NV of B and one of A.
template <int NV>
inline constexpr int kTileRows = (kRegisters == 32 ? 24 : 12) / NV < 12 ? (kRegisters == 32 ? 24 : 12) / NV : 12;

/// Columns n as groups of vectors.
struct Columns {
  int64_t n, vectors, groups;
};
ZOI_INLINE Columns columns_of(int64_t n) {
  const int64_t vectors = (n + kWidth - 1) / kWidth;
  return {n, vectors, vectors < 2 ? vectors : vectors / 2};
}
ZOI_INLINE int group_vectors(Columns c, int64_t group) {
  return group + 1 < c.groups ? 2 : static_cast<int>(c.vectors - 2 * (c.groups - 1));
}
ZOI_INLINE int64_t tile_rows(int vectors) {
  return vectors == 1 ? kTileRows<1> : vectors == 2 ? kTileRows<2> : kTileRows<3>;
}
/// Floats of B [k, n] packed.
ZOI_INLINE int64_t packed_floats(int64_t k, int64_t n) { return k * columns_of(n).vectors * kWidth; }
/// Where a group starts.
ZOI_INLINE int64_t group_offset(int64_t k, int64_t group) { return group * 2 * kWidth * k; }

/// Packs b[kk * row + j * col] of one [k, n] matrix.
ZOI_INLINE void pack_columns(const float* b, int64_t row, int64_t col, int64_t k, int64_t n, float* packed) {
  const Columns c = columns_of(n);
  for (int64_t g = 0; g < c.groups; g++) {
    const int64_t width = group_vectors(c, g) * kWidth, first_column = g * 2 * kWidth;
    float* to = packed + group_offset(k, g);
    for (int64_t kk = 0; kk < k; kk++)
      for (int64_t j = 0; j < width; j++)
        to[kk * width + j] = first_column + j < n ? b[kk * row + (first_column + j) * col] : 0.0f;
  }
}

struct True {
  constexpr operator bool() const { return true; }
};
struct False {
  constexpr operator bool() const { return false; }
};

/// What happens to a tile's sums: bias, residual, activation. `low` and `high` clamp (none and relu are clamps too), or
/// with `swish` they clamp the factor slope v + offset of v. Other activations, and a residual after any, are applied
/// in a second pass over the stored tile.
struct Epilogue {
  const float* bias;  // of the tile's first column, or null
  float low, high;
  float alpha;
  bool swish;
  float slope, offset;
};
/// Whether the activation is applied before the store, rather than in a second pass.
ZOI_INLINE bool is_clamp(int64_t act) {
  return act == kActNone || act == kActRelu || act == kActClip || act == kActHardSwish;
}
ZOI_INLINE Epilogue epilogue_of(int64_t act, double p0, double p1) {
  const float infinity = __builtin_inff();
  if (act == kActHardSwish) return {nullptr, 0.0f, 1.0f, 1.0f, true, static_cast<float>(p0), static_cast<float>(p1)};
  const float low = act == kActRelu ? 0.0f : act == kActClip ? static_cast<float>(p0) : -infinity;
  return {nullptr, low, act == kActClip ? static_cast<float>(p1) : infinity, 1.0f, false, 0.0f, 0.0f};
}

/// acc += rows[i][0..k) times b[k][NV * W] (`step` floats between rows of b). U sums of each kind run side by side,
/// for tiles too small to hide latency otherwise.
template <int MR, int NV, int U>
ZOI_INLINE void multiply(V (&acc)[U][MR][NV], const float* const* rows, const float* b, int64_t step, int64_t k) {
  int64_t kk = 0;
  for (; kk + U <= k; kk += U) {
#pragma GCC unroll 8
    for (int u = 0; u < U; u++) {
      V vb[NV];
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) vb[v] = load(b + u * step + v * kWidth);
#pragma GCC unroll 16
      for (int i = 0; i < MR; i++) {
        const V va = broadcast(rows[i] + kk + u);
#pragma GCC unroll 8
        for (int v = 0; v < NV; v++) acc[u][i][v] = fma(va, vb[v], acc[u][i][v]);
      }
    }
    b += U * step;
  }
  if constexpr (U > 1) {
    for (; kk < k; kk++, b += step) {
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) {
        const V vb = load(b + v * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < MR; i++) acc[0][i][v] = fma(broadcast(rows[i] + kk), vb, acc[0][i][v]);
      }
    }
  }
}

/// Sums side by side that a tile of this size needs.
template <int MR, int NV>
inline constexpr int kUnroll = MR * NV >= 8   ? 1
                               : MR * NV >= 4 ? 2
                                              : 4;

template <int MR, int NV, int U>
ZOI_INLINE void clear(V (&acc)[U][MR][NV]) {
#pragma GCC unroll 8
  for (int u = 0; u < U; u++)
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) acc[u][i][v] = zero();
}

/// Stores clamp(alpha acc + bias + residual). The last of the NV vectors has `lanes` lanes. out(i) and residual(i) are
/// where row i starts; there are residuals only with `add_residual`.
template <int MR, int NV, int U, class Residual, class Out>
ZOI_INLINE void finish(V (&acc)[U][MR][NV], const Epilogue& e, bool add_residual, Residual residual, Out out,
                       int lanes) {
  const V low = set1(e.low), high = set1(e.high), alpha = set1(e.alpha);
  const V slope = set1(e.slope), offset = set1(e.offset);
  const auto store_all = [&](auto whole, auto swish) __attribute__((always_inline)) {
    const M last = first(lanes);
    const auto get = [&](const float* from, int v) __attribute__((always_inline)) {
      return whole || v + 1 < NV ? load(from + v * kWidth) : load(from + v * kWidth, last);
    };
    V bias[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) bias[v] = e.bias == nullptr ? zero() : get(e.bias, v);
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) {
        V sum = acc[0][i][v];
#pragma GCC unroll 8
        for (int u = 1; u < U; u++) sum = add(sum, acc[u][i][v]);
        sum = fma(sum, alpha, bias[v]);
        if (add_residual) sum = add(sum, get(residual(i), v));
        if (swish)
          sum = mul(sum, min_second(high, max_second(low, fma(sum, slope, offset))));
        else
          sum = min_second(high, max_second(low, sum));
        if (whole || v + 1 < NV)
          store(out(i) + v * kWidth, sum);
        else
          store_first(out(i) + v * kWidth, sum, lanes);
      }
  };
  if (lanes == kWidth)
    e.swish ? store_all(True{}, True{}) : store_all(True{}, False{});
  else
    e.swish ? store_all(False{}, True{}) : store_all(False{}, False{});
}

/// The second pass over `count` stored rows of `n` columns: out = act(out) + residual.
[[gnu::noinline, maybe_unused]] static void activate_rows(float* const* out, const float* const* residual, int count,
                                                          int64_t n, int64_t act, float p0, float p1) {
  with_activation(act, [&](auto tag) __attribute__((always_inline)) {
    for (int i = 0; i < count;) {
      // Rows that follow each other in memory are one.
      int rows = 1;
      while (residual == nullptr && i + rows < count && out[i + rows] == out[i] + rows * n) rows++;
      for (int64_t j = 0, end = rows * n; j < end; j += kWidth) {
        const int64_t left = end - j;
        const M lanes = first(static_cast<int>(left < kWidth ? left : kWidth));
        V v = activate<tag.value>(load(out[i] + j, lanes), set1(p0), set1(p1));
        if (residual != nullptr) v = add(v, load(residual[i] + j, lanes));
        if (left >= kWidth)
          store(out[i] + j, v);
        else
          store_first(out[i] + j, v, static_cast<int>(left));
      }
      i += rows;
    }
  });
}

/// Rows of the next tile: `left` rows in tiles of at most `most`, as even as possible.
ZOI_INLINE int64_t next_rows(int64_t left, int64_t most) {
  const int64_t tiles = (left + most - 1) / most;
  return (left + tiles - 1) / tiles;
}

/// Calls f.template operator()<MR, NV>() for run-time rows and vectors.
template <int NV, int MR, class F>
ZOI_INLINE void with_rows(int64_t rows, F&& f) {
  if constexpr (MR > 1) {
    if (rows < MR) return with_rows<NV, MR - 1>(rows, static_cast<F&&>(f));
  }
  f.template operator()<MR, NV>();
}
template <class F>
ZOI_INLINE void with_tile(int64_t rows, int vectors, F&& f) {
  if (vectors == 2) return with_rows<2, kTileRows<2>>(rows, static_cast<F&&>(f));
  if (vectors == 3) return with_rows<3, kTileRows<3>>(rows, static_cast<F&&>(f));
  with_rows<1, kTileRows<1>>(rows, static_cast<F&&>(f));
}

}  // namespace zoi::ZOI_ISA
