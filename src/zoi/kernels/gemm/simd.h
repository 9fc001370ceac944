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
  for (int64_t g = groups.begin; g < groups.end; g++) {
    const int vectors = group_vectors(c, g);
    const int64_t columns = p.n - g * 2 * kWidth - (vectors - 1) * kWidth;
    const int last = static_cast<int>(columns < kWidth ? columns : kWidth);
    for (int64_t i = rows.begin; i < rows.end;) {
      const int64_t count = next_rows(rows.end - i, tile_rows(vectors));
      with_tile(count, vectors, [&]<int MR, int NV>() { gemm_tile<MR, NV>(args, e, i, g, last); });
      i += count;
    }
  }
}

ZOI_INLINE void gemm_pack(const GemmProblem& p, int operand, const float* plain, float* packed) {
  if (operand == kGemmB) pack_columns(plain, p.b_transposed ? 1 : p.n, p.b_transposed ? p.k : 1, p.k, p.n, packed);
}
ZOI_INLINE double gemm_cost(const GemmProblem& p) {
  const double tiles = static_cast<double>(columns_of(p.n).vectors) * kWidth / 16;
  return static_cast<double>(p.m) * static_cast<double>(p.k) * tiles * (p.m < 4 ? 2.0 : 1.1) + 20;
}

}  // namespace zoi::ZOI_ISA
