// gemm in float32 vectors. B is packed in groups of columns (simd/tile.h), each of which meets the rows of A while it
// is in cache.
#pragma once

#include "gemm.h"

namespace zoi::ZOI_ISA {

struct GemmTile {
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t k;
  float* c;
  int64_t c_row;
  const float* residual;  // or null
  int64_t r_row;
  bool second_pass, after;  // activation in a second pass; residual after it
};

/// c[MR][group] of one register tile.
template <int MR, int NV>
[[gnu::noinline]] static void gemm_tile(const GemmTile& t, const Epilogue& e, int lanes) {
  constexpr int U = kUnroll<MR, NV>;
  const float* rows[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++) rows[i] = t.a + i * t.a_row;
  V acc[U][MR][NV];
  clear(acc);
  multiply<MR, NV, U>(acc, rows, t.b, NV * kWidth, t.k);
  const auto residual = [&](int i) __attribute__((always_inline)) { return t.residual + i * t.r_row; };
  const auto out = [&](int i) __attribute__((always_inline)) { return t.c + i * t.c_row; };
  finish(acc, e, t.residual != nullptr && !t.after, residual, out, lanes);
}

/// The activation, and the residual after it, of `count` rows of `columns` stored elements.
[[gnu::noinline, maybe_unused]] static void gemm_second_pass(const GemmProblem& p, const GemmTile& t, int64_t count,
                                                             int64_t columns) {
  const int64_t act = is_clamp(p.act) ? static_cast<int64_t>(kActNone) : p.act;
  for (int64_t i = 0; i < count; i++) {
    float* out[1] = {t.c + i * t.c_row};
    const float* residual[1] = {t.residual + i * t.r_row};
    activate_rows(out, t.after ? residual : nullptr, 1, columns, act, static_cast<float>(p.act_p0),
                  static_cast<float>(p.act_p1));
  }
}

inline constexpr int64_t kLargeFloats = int64_t{1} << 16;

/// One group of columns for these rows; with `fetch`, the next group is brought near meanwhile.
ZOI_INLINE void gemm_group(const GemmArgs& args, const Epilogue& epilogue, Columns c, int64_t g, Range rows,
                           bool fetch) {
  const GemmProblem& p = args.problem;
  const int vectors = group_vectors(c, g);
  const int64_t column = g * 2 * kWidth, left = p.n - column;
  const int64_t columns = left < vectors * kWidth ? left : vectors * kWidth;
  const int lanes = static_cast<int>(columns - (vectors - 1) * kWidth);
  const char* next = reinterpret_cast<const char*>(args.b + group_offset(p.k, g + 1));
  const int64_t lines_of_row =
      fetch ? p.k * group_vectors(c, g + 1) * kWidth * 4 / 64 / (rows.end - rows.begin) + 1 : 0;
  Epilogue e = epilogue;
  if (e.bias != nullptr) e.bias += column;
  GemmTile t;
  t.a = args.a + rows.begin * p.a_row;
  t.a_row = p.a_row;
  t.b = args.b + group_offset(p.k, g);
  t.k = p.k;
  t.c = args.c + rows.begin * p.c_row + column;
  t.c_row = p.c_row;
  t.residual = args.residual == nullptr ? nullptr : args.residual + rows.begin * p.r_row + column;
  t.r_row = p.r_row;
  t.after = p.residual_after != 0 && args.residual != nullptr;
  t.second_pass = !is_clamp(p.act) || t.after;
  const int64_t most = tile_rows(vectors);
  for (int64_t i = rows.begin; i < rows.end;) {
    const int64_t count = rows.end - i >= 2 * most ? most : next_rows(rows.end - i, most);
    for (int64_t line = 0; line < count * lines_of_row; line++, next += 64) __builtin_prefetch(next, 0, 2);
    with_tile(count, vectors, [&]<int MR, int NV>() { gemm_tile<MR, NV>(t, e, lanes); });
    if (t.second_pass) gemm_second_pass(p, t, count, columns);
    i += count;
    t.a += count * t.a_row;
    t.c += count * t.c_row;
    if (t.residual != nullptr) t.residual += count * t.r_row;
  }
}

/// Rows in parts of about half of L1, or of a few tiles where b is large. The parts do not depend on the lanes: a row's
/// sum is added up in an order that its tile decides, so the tiles must be the same for any number of lanes.
ZOI_INLINE bool is_large(const GemmProblem& p) { return packed_floats(p.k, p.n) > kLargeFloats; }
ZOI_INLINE int64_t row_parts(const GemmProblem& p) {
  const int64_t rows = is_large(p) ? 48 : 4096 / (p.k > 0 ? p.k : 1) / 12 * 12;
  const int64_t parts = p.m / (rows < 24 ? 24 : rows);
  return parts > 1 ? parts : 1;
}
ZOI_INLINE Range part_rows(const GemmProblem& p, int64_t part, int64_t parts) {
  return {p.m * part / parts, p.m * (part + 1) / parts};
}

/// Lanes share the groups where there are enough of them, else the parts.
ZOI_INLINE int64_t gemm_slices(const GemmProblem& p) {
  const int64_t parts = row_parts(p), groups = columns_of(p.n).groups;
  return parts > groups ? parts : groups;
}

ZOI_INLINE void gemm(const GemmArgs& args, Lane lane) {
  const GemmProblem& p = args.problem;
  if (p.m == 0) return;
  const Columns c = columns_of(p.n);
  Epilogue e = epilogue_of(p.act, p.act_p0, p.act_p1);
  e.bias = args.bias;
  const int64_t all = row_parts(p);
  Range groups = {0, c.groups}, parts = {0, all};
  (all > c.groups ? parts : groups) = lane_range(gemm_slices(p), lane);
  if (is_large(p)) {  // b passes through the cache once, all rows at a time
    for (int64_t g = groups.begin; g < groups.end; g++)
      for (int64_t part = parts.begin; part < parts.end; part++)
        gemm_group(args, e, c, g, part_rows(p, part, all), part == parts.begin && g + 1 < groups.end);
  } else {  // b stays there, and parts of the rows pass by
    for (int64_t part = parts.begin; part < parts.end; part++)
      for (int64_t g = groups.begin; g < groups.end; g++) gemm_group(args, e, c, g, part_rows(p, part, all), false);
  }
}

// One row (m = 1): every weight is used once, so what counts is loads. Groups are eight vectors wide, for one broadcast
// of a to serve eight sums; narrower last groups sum over several k side by side.
inline constexpr int kRowVectors = 8;

template <int NV>
inline constexpr int kRowUnroll = NV > 6   ? 1
                                  : NV > 3 ? 2
                                  : NV > 1 ? 4
                                           : 8;

template <int NV>
[[gnu::noinline]] static void gemm_row_tile(const GemmArgs& args, const Epilogue& e, int64_t column, int lanes) {
  constexpr int U = kRowUnroll<NV>;
  const float* rows[1] = {args.a};
  V acc[U][1][NV];
  clear(acc);
  multiply<1, NV, U>(acc, rows, args.b + column * args.problem.k, NV * kWidth, args.problem.k);
  const bool add = args.residual != nullptr && !args.problem.residual_after;
  Epilogue here = e;
  if (here.bias != nullptr) here.bias += column;
  const auto residual = [&](int) __attribute__((always_inline)) { return args.residual + column; };
  const auto out = [&](int) __attribute__((always_inline)) { return args.c + column; };
  finish(acc, here, add, residual, out, lanes);
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
      for (int64_t j = 0; j < padded; j++) to[k * padded + j] = j < count ? plain[k * row + (column + j) * col] : 0.0f;
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
