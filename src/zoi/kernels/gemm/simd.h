// gemm in float32 vectors. B is packed in groups of columns (simd/tile.h). Group by group, all rows of A pass by while
// the group stays in cache, so B, which may come from memory, is read once.
#pragma once

#include "gemm.h"

namespace zoi::ZOI_ISA {

/// c[MR][group] of one register tile.
template <int MR, int NV>
[[gnu::noinline]] static void gemm_tile(const GemmArgs& args, const Epilogue& e, int64_t row, int64_t group, int last) {
  const GemmProblem& p = args.problem;
  const int64_t column = group * 2 * kWidth;
  constexpr int U = kUnroll<MR, NV>;
  const float* rows[MR];
  float* out[MR];
  const float* residual[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++) {
    rows[i] = args.a + (row + i) * p.a_row;
    out[i] = args.c + (row + i) * p.c_row + column;
    residual[i] = args.residual + (row + i) * p.r_row + column;
  }
  V acc[U][MR][NV];
  clear(acc);
  multiply<MR, NV, U>(acc, rows, args.b + group_offset(p.k, group), NV * kWidth, p.k);
  Epilogue here = e;
  if (here.bias != nullptr) here.bias += column;
  const bool clamp = is_clamp(p.act), after = p.residual_after != 0 && args.residual != nullptr;
  finish(acc, here, args.residual == nullptr || after ? nullptr : residual, out, last);
  if (!clamp || after) {
    const int64_t left = p.n - column, width = left < NV * kWidth ? left : NV * kWidth;
    activate_rows(out, after ? residual : nullptr, MR, width, clamp ? kActNone : p.act, static_cast<float>(p.act_p0),
                  static_cast<float>(p.act_p1));
  }
}

inline constexpr int64_t kLargeFloats = int64_t{1} << 16;

/// Lanes share the groups where there are enough of them, else the rows.
ZOI_INLINE bool by_rows(const GemmProblem& p) { return p.m / kTileRows<2> > columns_of(p.n).groups; }
ZOI_INLINE int64_t gemm_slices(const GemmProblem& p) { return by_rows(p) ? p.m / kTileRows<2> : columns_of(p.n).groups; }

ZOI_INLINE void gemm(const GemmArgs& args, Lane lane) {
  const GemmProblem& p = args.problem;
  const Columns c = columns_of(p.n);
  Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  e.bias = args.bias;
  Range groups = {0, c.groups}, rows = {0, p.m};
  const Range share = lane_range(gemm_slices(p), lane);
  if (by_rows(p))
    rows = {share.begin * kTileRows<2>, lane.index + 1 == lane.count ? p.m : share.end * kTileRows<2>};
  else
    groups = share;
  const bool large = packed_floats(p.k, p.n) > kLargeFloats;
  for (int64_t g = groups.begin; g < groups.end; g++) {
    const int vectors = group_vectors(c, g);
    const int64_t columns = p.n - g * 2 * kWidth - (vectors - 1) * kWidth;
    const int last = static_cast<int>(columns < kWidth ? columns : kWidth);
    // Where b comes from beyond L2, the next group is fetched while this one is used.
    const char* next = reinterpret_cast<const char*>(args.b + group_offset(p.k, g + 1));
    const int64_t ahead = large && g + 1 < groups.end ? p.k * group_vectors(c, g + 1) * kWidth * 4 : 0;
    const int64_t lines_of_row = ahead > 0 ? ahead / 64 / (rows.end - rows.begin) + 1 : 0;
    for (int64_t i = rows.begin; i < rows.end;) {
      const int64_t count = next_rows(rows.end - i, tile_rows(vectors));
      for (int64_t line = 0; line < count * lines_of_row; line++, next += 64) __builtin_prefetch(next, 0, 2);
      with_tile(count, vectors, [&]<int MR, int NV>() { gemm_tile<MR, NV>(args, e, i, g, last); });
      i += count;
    }
  }
}

// One row (m = 1): every weight is used once, so what counts is loads. Groups are eight vectors wide, for one broadcast
// of a to serve eight sums; narrower last groups sum over several k side by side.
inline constexpr int kRowVectors = 8;

template <int NV>
inline constexpr int kRowUnroll = NV > 6 ? 1 : NV > 3 ? 2 : NV > 1 ? 4 : 8;

template <int NV>
[[gnu::noinline]] static void gemm_row_tile(const GemmArgs& args, const Epilogue& e, int64_t column, int lanes) {
  constexpr int U = kRowUnroll<NV>;
  const float* rows[1] = {args.a};
  float* out[1] = {args.c + column};
  const float* residual[1] = {args.residual + column};
  V acc[U][1][NV];
  clear(acc);
  multiply<1, NV, U>(acc, rows, args.b + column * args.problem.k, NV * kWidth, args.problem.k);
  const bool add = args.residual != nullptr && !args.problem.residual_after;
  Epilogue here = e;
  if (here.bias != nullptr) here.bias += column;
  finish(acc, here, add ? residual : nullptr, out, lanes);
}

template <int NV, class F>
ZOI_INLINE void with_vectors(int64_t vectors, F&& f) {
  if constexpr (NV > 1) {
    if (vectors < NV) return with_vectors<NV - 1>(vectors, static_cast<F&&>(f));
  }
  f.template operator()<NV>();
}

ZOI_INLINE int64_t row_groups(const GemmProblem& p) {
  constexpr int64_t width = kRowVectors * kWidth;
  return (p.n + width - 1) / width;
}

ZOI_INLINE void gemm_row(const GemmArgs& args, Lane lane) {
  const GemmProblem& p = args.problem;
  constexpr int64_t width = kRowVectors * kWidth;
  Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  e.bias = args.bias;
  const Range groups = lane_range(row_groups(p), lane);
  const int64_t begin = groups.begin * width, end = groups.end * width < p.n ? groups.end * width : p.n;
  for (int64_t column = begin; column < end; column += width) {
    const int64_t count = p.n - column < width ? p.n - column : width, vectors = (count + kWidth - 1) / kWidth;
    const int last = static_cast<int>(count - (vectors - 1) * kWidth);
    with_vectors<kRowVectors>(vectors, [&]<int NV>() { gemm_row_tile<NV>(args, e, column, last); });
  }
  const bool clamp = is_clamp(p.act), after = p.residual_after != 0 && args.residual != nullptr;
  if ((!clamp || after) && begin < end) {
    float* out[1] = {args.c + begin};
    const float* residual[1] = {args.residual + begin};
    activate_rows(out, after ? residual : nullptr, 1, end - begin, clamp ? static_cast<int64_t>(kActNone) : p.act,
                  static_cast<float>(p.act_p0), static_cast<float>(p.act_p1));
  }
}

ZOI_INLINE void gemm_row_pack(const GemmProblem& p, const float* plain, float* packed) {
  constexpr int64_t width = kRowVectors * kWidth;
  const int64_t row = p.b_transposed ? 1 : p.n, col = p.b_transposed ? p.k : 1;
  for (int64_t column = 0; column < p.n; column += width) {
    const int64_t count = p.n - column < width ? p.n - column : width;
    const int64_t padded = (count + kWidth - 1) / kWidth * kWidth;
    float* to = packed + column * p.k;
    for (int64_t k = 0; k < p.k; k++)
      for (int64_t j = 0; j < padded; j++)
        to[k * padded + j] = j < count ? plain[k * row + (column + j) * col] : 0.0f;
  }
}
ZOI_INLINE double gemm_row_cost(const GemmProblem& p) {
  return static_cast<double>(columns_of(p.n).vectors * p.k) * kWidth / 16 * 1.2 + 20;
}

ZOI_INLINE void gemm_pack(const GemmProblem& p, int operand, const float* plain, float* packed) {
  if (operand == kGemmB) pack_columns(plain, p.b_transposed ? 1 : p.n, p.b_transposed ? p.k : 1, p.k, p.n, packed);
}
ZOI_INLINE double gemm_cost(const GemmProblem& p) {
  const double tiles = static_cast<double>(columns_of(p.n).vectors) * kWidth / 16;
  return static_cast<double>(p.m) * static_cast<double>(p.k) * tiles * (p.m < 4 ? 2.0 : 1.1) + 20;
}

}  // namespace zoi::ZOI_ISA
