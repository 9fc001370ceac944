// Attention through L1, float32 vectors. Per head, k is transposed once into panels [n/W][d][W] of lane scratch; then
// kRows query rows at a time: scores into scratch, softmax there, and their product with v, whose 1/sum is applied to
// the kRows x dv result rather than to the kRows x n scores. Nothing of size m x n leaves L1.
#pragma once

#include "attention.h"

namespace zoi::ZOI_ISA {

inline constexpr int kRows = 6;                          // query rows of one block
inline constexpr int kGroup = kRegisters == 32 ? 4 : 2;  // vectors of one register tile
inline constexpr int64_t kSliceRows = 48;                // rows of a head that one slice takes
inline constexpr int64_t kMaxKeys = 2048;                // scores of a block stay well inside L2

ZOI_INLINE int64_t panels(int64_t n) { return (n + kWidth - 1) / kWidth; }

/// k [n, d] -> [panels][d][W], the last panel padded with zeros.
ZOI_INLINE void transpose_keys(const float* k, int64_t k_row, int64_t n, int64_t d, float* packed) {
  for (int64_t j0 = 0; j0 < n; j0 += kWidth, packed += d * kWidth) {
    const int64_t width = n - j0 < kWidth ? n - j0 : kWidth;
    const float* rows = k + j0 * k_row;
    for (int64_t c = 0; c < d; c++)
      for (int64_t j = 0; j < kWidth; j++) packed[c * kWidth + j] = j < width ? rows[j * k_row + c] : 0.0f;
  }
}

/// s[MR][NV * W] = q[MR][d] times NV panels of keys.
template <int MR, int NV>
ZOI_INLINE void score_tile(const float* q, int64_t q_row, const float* keys, int64_t d, float* s, int64_t s_row) {
  V acc[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) acc[i][v] = zero();
  for (int64_t c = 0; c < d; c++) {
    V b[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) b[v] = load(keys + (v * d + c) * kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
      const V a = broadcast(q + i * q_row + c);
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) acc[i][v] = fma(a, b[v], acc[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) store(s + i * s_row + v * kWidth, acc[i][v]);
}

/// y[MR][columns] = factor[MR] * s[MR][n] times v[n][columns]; the last of the NV vectors has the lanes of `last`.
template <int MR, int NV>
ZOI_INLINE void value_tile(const float* s, int64_t s_row, const float* values, int64_t v_row, int64_t n, M last,
                           const float* factor, float* y, int64_t y_row) {
  V acc[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) acc[i][v] = zero();
  for (int64_t j = 0; j < n; j++) {
    V b[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV - 1; v++) b[v] = load(values + j * v_row + v * kWidth);
    b[NV - 1] = load(values + j * v_row + (NV - 1) * kWidth, last);
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
      const V a = broadcast(s + i * s_row + j);
#pragma GCC unroll 8
      for (int v = 0; v < NV; v++) acc[i][v] = fma(a, b[v], acc[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++) {
    const V f = broadcast(factor + i);
#pragma GCC unroll 8
    for (int v = 0; v < NV - 1; v++) store(y + i * y_row + v * kWidth, mul(acc[i][v], f));
    store(y + i * y_row + (NV - 1) * kWidth, mul(acc[i][NV - 1], f), last);
  }
}

/// Exponentials of one row of scores in place; returns 1 / their sum. mask_col is 0 or 1.
ZOI_INLINE float exponentials(float* s, const float* mask, int64_t mask_col, int64_t n, float scale) {
  const V scales = set1(scale), lowest = set1(-__builtin_inff());
  V top = lowest;
  for (int64_t j = 0; j < n; j += kWidth) {
    const M lanes = first(static_cast<int>(n - j < kWidth ? n - j : kWidth));
    const V shift = mask == nullptr ? zero() : mask_col == 0 ? set1(*mask) : load(mask + j, lanes);
    const V value = select(lanes, fma(load(s + j), scales, shift), lowest);
    store(s + j, value);
    top = max_second(top, value);
  }
  // A NaN may be lost here; its own exponential then makes the sum, and so the row, NaN.
  const V max = set1(reduce_max(top));
  V sum = zero();
  for (int64_t j = 0; j < n; j += kWidth) {
    const M lanes = first(static_cast<int>(n - j < kWidth ? n - j : kWidth));
    const V e = exp_nonpositive(sub(load(s + j), max));
    store(s + j, e);
    sum = add(sum, select(lanes, e, zero()));
  }
  return 1.0f / reduce_add(sum);
}

struct AttentionHead {
  const float* q;
  const float* v;
  const float* mask;
  float* y;
  const float* keys;  // transposed
  float* scores;
};

/// Query rows [0, MR) of the pointers in `h`.
template <int MR>
[[gnu::noinline]] static void attend(const AttentionProblem& p, const AttentionHead& h) {
  const int64_t count = panels(p.n), s_row = count * kWidth;
  int64_t panel = 0;
  for (; panel + kGroup <= count; panel += kGroup)
    score_tile<MR, kGroup>(h.q, p.q_row, h.keys + panel * p.d * kWidth, p.d, h.scores + panel * kWidth, s_row);
  for (; panel < count; panel++)
    score_tile<MR, 1>(h.q, p.q_row, h.keys + panel * p.d * kWidth, p.d, h.scores + panel * kWidth, s_row);

  float factor[MR];
  for (int i = 0; i < MR; i++)
    factor[i] = exponentials(h.scores + i * s_row, h.mask == nullptr ? nullptr : h.mask + i * p.mask_row, p.mask_col,
                             p.n, static_cast<float>(p.scale));

  for (int64_t c = 0; c < p.dv;) {
    const int64_t left = p.dv - c;
    const float* v = h.v + c;
    float* y = h.y + c;
    if (kGroup == 4 && left > 2 * kWidth) {
      const int64_t tail = left > 4 * kWidth ? kWidth : left - 3 * kWidth;
      if (tail > 0) {
        value_tile<MR, 4>(h.scores, s_row, v, p.v_row, p.n, first(static_cast<int>(tail)), factor, y, p.y_row);
        c += 4 * kWidth;
        continue;
      }
    }
    if (left > kWidth) {
      const int64_t tail = left - kWidth < kWidth ? left - kWidth : kWidth;
      value_tile<MR, 2>(h.scores, s_row, v, p.v_row, p.n, first(static_cast<int>(tail)), factor, y, p.y_row);
      c += 2 * kWidth;
    } else {
      value_tile<MR, 1>(h.scores, s_row, v, p.v_row, p.n, first(static_cast<int>(left)), factor, y, p.y_row);
      c += kWidth;
    }
  }
}

ZOI_INLINE int64_t row_slices(const AttentionProblem& p) { return (p.m + kSliceRows - 1) / kSliceRows; }

ZOI_INLINE void attention(const AttentionArgs& args, Lane lane) {
  const AttentionProblem& p = args.problem;
  const int64_t parts = row_slices(p);
  const Range range = lane_range(p.batch0 * p.batch1 * parts, lane);
  auto* keys = reinterpret_cast<float*>(lane.scratch);
  float* scores = keys + panels(p.n) * p.d * kWidth;
  int64_t packed = -1;
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t head = slice / parts, b = head / p.batch1, h = head % p.batch1;
    if (head != packed) transpose_keys(args.k + b * p.k_batch0 + h * p.k_batch1, p.k_row, p.n, p.d, keys);
    packed = head;
    const int64_t begin = slice % parts * kSliceRows, end = begin + kSliceRows < p.m ? begin + kSliceRows : p.m;
    for (int64_t i = begin; i < end; i += kRows) {
      const AttentionHead at = {
          args.q + b * p.q_batch0 + h * p.q_batch1 + i * p.q_row,
          args.v + b * p.v_batch0 + h * p.v_batch1,
          args.mask == nullptr ? nullptr : args.mask + b * p.mask_batch0 + h * p.mask_batch1 + i * p.mask_row,
          args.y + b * p.y_batch0 + h * p.y_batch1 + i * p.y_row,
          keys,
          scores,
      };
      switch (end - i) {
        case 1:
          attend<1>(p, at);
          break;
        case 2:
          attend<2>(p, at);
          break;
        case 3:
          attend<3>(p, at);
          break;
        case 4:
          attend<4>(p, at);
          break;
        case 5:
          attend<5>(p, at);
          break;
        default:
          attend<6>(p, at);
      }
    }
  }
}

ZOI_INLINE bool attention_supports(const AttentionProblem& p) {
  return p.n <= kMaxKeys && (p.mask_col == 0 || p.mask_col == 1);
}
ZOI_INLINE int64_t attention_scratch(const AttentionProblem& p) { return panels(p.n) * kWidth * (p.d + kRows) * 4; }
ZOI_INLINE double attention_cost(const AttentionProblem& p) {
  const double rows = static_cast<double>(p.batch0 * p.batch1 * p.m), n = static_cast<double>(p.n);
  const double fmas = rows * n * static_cast<double>(p.d + p.dv) / 16;  // both ISAs: 16 lanes a cycle
  return 1.1 * fmas + rows * n * 30 / kWidth;
}

}  // namespace zoi::ZOI_ISA
