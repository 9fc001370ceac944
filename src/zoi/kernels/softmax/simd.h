// Softmax in float32 vectors. Rows (inner == 1): three passes over a row that stays in L1: scaled and masked values
// with their maximum, exponentials with their sum, division. Columns (inner > 1): the same, for kColumns columns
// side by side.
#pragma once

#include "softmax.h"

namespace zoi::ZOI_ISA {

inline constexpr int kVectors = 4;
inline constexpr int64_t kColumns = kVectors * kWidth;

enum class Mask { none, one, row };  // no mask, one value for the whole row, a value for each element

template <Mask kind>
ZOI_INLINE void softmax_row(const float* x, const float* mask, float* y, int64_t n, float scale, bool log) {
  const V scales = set1(scale), lowest = set1(-__builtin_inff());
  const V shift = kind == Mask::one ? broadcast(mask) : zero();
  const int64_t whole = n / kWidth * kWidth;
  const M rest = first(static_cast<int>(n - whole));
  V top = lowest, other = lowest;
  const auto value = [&](V v, V m) __attribute__((always_inline)) {
    return kind == Mask::none ? mul(v, scales) : fma(v, scales, kind == Mask::one ? shift : m);
  };
  int64_t i = 0;
  for (; i + 2 * kWidth <= whole; i += 2 * kWidth) {
    V v = value(load(x + i), kind == Mask::row ? load(mask + i) : zero());
    V w = value(load(x + i + kWidth), kind == Mask::row ? load(mask + i + kWidth) : zero());
    store(y + i, v);
    store(y + i + kWidth, w);
    top = max_second(top, v);
    other = max_second(other, w);
  }
  if (i < whole) {
    V v = value(load(x + i), kind == Mask::row ? load(mask + i) : zero());
    store(y + i, v);
    top = max_second(top, v);
  }
  if (whole < n) {
    V v = value(load(x + whole, rest), kind == Mask::row ? load(mask + whole, rest) : zero());
    store(y + whole, v, rest);
    other = max_second(other, select(rest, v, lowest));
  }
  // A NaN may be lost here; its own exponential then makes the sum, and so every result, NaN.
  const V max = set1(reduce_max(max_second(top, other)));

  V sum = zero();
  for (i = 0; i < whole; i += kWidth) {
    V e = exp_flushed(sub(load(y + i), max));
    if (!log) store(y + i, e);
    sum = add(sum, e);
  }
  if (whole < n) {
    V e = exp_flushed(sub(load(y + whole, rest), max));
    if (!log) store(y + whole, e, rest);
    sum = add(sum, select(rest, e, zero()));
  }
  const V total = set1(reduce_add(sum));

  if (log) {
    const V log_total = zoi::ZOI_ISA::log(total);
    for (i = 0; i < whole; i += kWidth) store(y + i, sub(sub(load(y + i), max), log_total));
    if (whole < n) store(y + whole, sub(sub(load(y + whole, rest), max), log_total), rest);
  } else {
    const V factor = div(set1(1.0f), total);
    for (i = 0; i < whole; i += kWidth) store(y + i, mul(load(y + i), factor));
    if (whole < n) store(y + whole, mul(load(y + whole, rest), factor), rest);
  }
}

template <Mask kind>
ZOI_INLINE void softmax_rows(const SoftmaxArgs& args, Range range) {
  const SoftmaxProblem& p = args.problem;
  for (int64_t o = range.begin; o < range.end; o++) {
    const float* mask = kind == Mask::none ? nullptr : args.mask + o / p.mask_div % p.mask_rows * p.mask_row;
    softmax_row<kind>(args.x + o * p.x_outer, mask, args.y + o * p.y_outer, p.axis, static_cast<float>(p.scale),
                      p.log != 0);
  }
}

// `vectors` vectors of columns, the last of which has the lanes `m` only. Like the rows, y holds the values between
// the passes.
template <int vectors>
ZOI_INLINE void softmax_columns(const SoftmaxProblem& p, const float* x, float* y, M m) {
  const V scale = set1(static_cast<float>(p.scale));
  V top[vectors], sum[vectors];
#define ZOI_LOAD(q, k) ((k) + 1 < vectors ? load((q) + (k) * kWidth) : load((q) + (k) * kWidth, m))
  for (int k = 0; k < vectors; k++) top[k] = set1(-__builtin_inff()), sum[k] = zero();
  for (int64_t a = 0; a < p.axis; a++)
    for (int k = 0; k < vectors; k++) top[k] = max_second(top[k], mul(ZOI_LOAD(x + a * p.x_axis, k), scale));
  for (int64_t a = 0; a < p.axis; a++) {
    float* row = y + a * p.y_axis;
    for (int k = 0; k < vectors; k++) {
      V v = sub(mul(ZOI_LOAD(x + a * p.x_axis, k), scale), top[k]);
      V e = exp_flushed(v);
      sum[k] = add(sum[k], e);
      V result = p.log ? v : e;
      k + 1 < vectors ? store(row + k * kWidth, result) : store(row + k * kWidth, result, m);
    }
  }
  for (int k = 0; k < vectors; k++) sum[k] = p.log ? log(sum[k]) : div(set1(1.0f), sum[k]);
  for (int64_t a = 0; a < p.axis; a++) {
    float* row = y + a * p.y_axis;
    for (int k = 0; k < vectors; k++) {
      V v = ZOI_LOAD(row, k);
      V result = p.log ? sub(v, sum[k]) : mul(v, sum[k]);
      k + 1 < vectors ? store(row + k * kWidth, result) : store(row + k * kWidth, result, m);
    }
  }
#undef ZOI_LOAD
}

ZOI_INLINE int64_t column_parts(const SoftmaxProblem& p) { return (p.inner + kColumns - 1) / kColumns; }

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const SoftmaxArgs*>(raw);
  const SoftmaxProblem& p = args.problem;
  if (p.axis == 0) return;
  if (p.inner == 1) {
    const Range range = lane_range(p.outer, lane);
    if (!args.mask) return softmax_rows<Mask::none>(args, range);
    return p.mask_col ? softmax_rows<Mask::row>(args, range) : softmax_rows<Mask::one>(args, range);
  }
  const int64_t parts = column_parts(p);
  const Range range = lane_range(p.outer * parts, lane);
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t o = slice / parts, column = slice % parts * kColumns;
    const float* x = args.x + o * p.x_outer + column;
    float* y = args.y + o * p.y_outer + column;
    const int64_t columns = p.inner - column < kColumns ? p.inner - column : kColumns;
    const int vectors = static_cast<int>((columns + kWidth - 1) / kWidth);
    const M m = first(static_cast<int>(columns - (vectors - 1) * kWidth));
    switch (vectors) {
      case 1: softmax_columns<1>(p, x, y, m); break;
      case 2: softmax_columns<2>(p, x, y, m); break;
      case 3: softmax_columns<3>(p, x, y, m); break;
      default: softmax_columns<4>(p, x, y, m); break;
    }
  }
}

static bool supports(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return p.inner != 1 || (p.x_axis == 1 && p.y_axis == 1 && (p.mask_col == 0 || p.mask_col == 1)) || p.axis <= 1;
}
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return p.inner == 1 ? p.outer : p.outer * column_parts(p);
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return static_cast<double>(slices(problem)) * 40.0 + static_cast<double>(p.outer) * static_cast<double>(p.axis) *
                                                           static_cast<double>(p.inner) * 16.0 / kWidth;
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
