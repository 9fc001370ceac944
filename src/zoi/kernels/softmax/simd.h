// Softmax in float32 vectors. Rows (inner == 1): three passes over a row that stays in L1: the maximum, exponentials
// with their sum, division. Columns (inner > 1): the same, for kColumns columns side by side.
#pragma once

#include "softmax.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kColumns = 128;  // wide enough that rows a power of two apart do not fight for a cache set

enum class Mask { none, one, row };  // no mask, one value for the whole row, a value for each element

/// The maximum of a row; a masked row is stored in y, scaled and masked. A NaN may be lost here; its own exponential
/// then makes the sum, and so every result, NaN.
template <Mask kind>
ZOI_INLINE float row_maximum(const float* x, const float* mask, float* y, int64_t n, V scale) {
  const V shift = kind == Mask::one ? broadcast(mask) : zero();
  const auto value = [&](int64_t i, auto... m) __attribute__((always_inline)) {
    if constexpr (kind == Mask::none) return load(x + i, m...);
    V v = fma(load(x + i, m...), scale, kind == Mask::one ? shift : load(mask + i, m...));
    store(y + i, v, m...);
    return v;
  };
  V top = set1(-__builtin_inff()), other = top;
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    top = max_second(top, value(i));
    other = max_second(other, value(i + kWidth));
  }
  if (i + kWidth <= n) {
    top = max_second(top, value(i));
    i += kWidth;
  }
  if (i < n) {
    const M m = first(static_cast<int>(n - i));
    other = max_second(other, select(m, value(i, m), other));
  }
  return reduce_max(max_second(top, other));
}

/// The sum of exp(v - max); the terms are stored in y unless the logarithm is wanted.
template <bool log>
ZOI_INLINE float row_sum(const float* v, float* y, int64_t n, V max, const FlushedExponential& exponential) {
  const auto term = [&](int64_t i, auto... m) __attribute__((always_inline)) {
    V e = exponential(sub(load(v + i, m...), max));
    if constexpr (!log) store(y + i, e, m...);
    return e;
  };
  V sum = zero(), other = zero();
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    sum = add(sum, term(i));
    other = add(other, term(i + kWidth));
  }
  if (i + kWidth <= n) {
    sum = add(sum, term(i));
    i += kWidth;
  }
  if (i < n) {
    const M m = first(static_cast<int>(n - i));
    other = add(other, select(m, term(i, m), zero()));
  }
  return reduce_add(add(sum, other));
}

template <bool log>
ZOI_INLINE void finish_row(const float* v, float* y, int64_t n, V max, V total, V scale) {
  const V minus_log = log ? sub(zero(), zoi::ZOI_ISA::log(total)) : zero(), factor = div(set1(1.0f), total);
  const auto finish = [&](int64_t i, auto... m) __attribute__((always_inline)) {
    V result = log ? fma(sub(load(v + i, m...), max), scale, minus_log) : mul(load(y + i, m...), factor);
    store(y + i, result, m...);
  };
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) finish(i);
  if (i < n) finish(i, first(static_cast<int>(n - i)));
}

// A few rows go through each pass together: while the last lanes of one row are reduced, the next row is under way.
template <Mask kind, bool log>
ZOI_INLINE void softmax_rows(const SoftmaxArgs& args, Range range) {
  constexpr int64_t kRows = 8, kGroup = 2048;  // rows and elements of a group, which stays in L1
  const SoftmaxProblem& p = args.problem;
  const float scale = static_cast<float>(p.scale), rest = kind == Mask::none ? scale : 1.0f;  // rest: after the mask
  const FlushedExponential exponential(rest);
  const int64_t fit = p.axis * kRows <= kGroup ? kRows : p.axis * 2 <= kGroup ? kGroup / p.axis : 1;
  float max[kRows], total[kRows];
  for (int64_t o = range.begin; o < range.end; o += fit) {
    const int64_t rows = range.end - o < fit ? range.end - o : fit;
    const auto x = [&](int64_t r) { return args.x + (o + r) * p.x_outer; };
    const auto y = [&](int64_t r) { return args.y + (o + r) * p.y_outer; };
    const auto v = [&](int64_t r) { return kind == Mask::none ? x(r) : y(r); };
    for (int64_t r = 0; r < rows; r++) {
      const float* mask = kind == Mask::none ? nullptr : args.mask + (o + r) / p.mask_div % p.mask_rows * p.mask_row;
      max[r] = row_maximum<kind>(x(r), mask, y(r), p.axis, set1(scale));
    }
    for (int64_t r = 0; r < rows; r++) total[r] = row_sum<log>(v(r), y(r), p.axis, set1(max[r]), exponential);
    for (int64_t r = 0; r < rows; r++) finish_row<log>(v(r), y(r), p.axis, set1(max[r]), set1(total[r]), set1(rest));
  }
}
template <Mask kind>
static void softmax_rows(const SoftmaxArgs& args, Range range) {
  args.problem.log ? softmax_rows<kind, true>(args, range) : softmax_rows<kind, false>(args, range);
}

// n <= kColumns columns; their maxima and sums are kept on the stack.
template <bool log>
ZOI_INLINE void softmax_columns(const SoftmaxProblem& p, const float* x, float* y, int64_t n) {
  const int64_t axis = p.axis, x_axis = p.x_axis, y_axis = p.y_axis;
  const V scale = set1(static_cast<float>(p.scale));
  const FlushedExponential exponential(static_cast<float>(p.scale));
  alignas(64) float top[kColumns], sum[kColumns];
  const int64_t whole = n / kWidth * kWidth;
  const M rest = first(static_cast<int>(n - whole));
  const auto for_vectors = [&](auto body) __attribute__((always_inline)) {
    for (int64_t i = 0; i < whole; i += kWidth) body(i);
    if (whole < n) body(whole, rest);
  };
  for (int64_t i = 0; i < kColumns; i += kWidth) store(top + i, set1(-__builtin_inff())), store(sum + i, zero());
  for (int64_t a = 0; a < axis; a++, x += x_axis)
    for_vectors([&](int64_t i, auto... m)
                    __attribute__((always_inline)) { store(top + i, max_second(load(top + i), load(x + i, m...))); });
  x -= axis * x_axis;
  for (int64_t a = 0; a < axis; a++, x += x_axis, y += y_axis)
    for_vectors([&](int64_t i, auto... m) __attribute__((always_inline)) {
      V d = sub(load(x + i, m...), load(top + i)), e = exponential(d);
      store(sum + i, add(load(sum + i), e));
      store(y + i, log ? d : e, m...);
    });
  y -= axis * y_axis;
  for (int64_t i = 0; i < kColumns; i += kWidth) {
    V s = load(sum + i);
    store(sum + i, log ? zoi::ZOI_ISA::log(s) : div(set1(1.0f), s));
  }
  for (int64_t a = 0; a < axis; a++, y += y_axis)
    for_vectors([&](int64_t i, auto... m) __attribute__((always_inline)) {
      V v = load(y + i, m...), s = load(sum + i);
      store(y + i, log ? sub(mul(v, scale), s) : mul(v, s), m...);
    });
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
    p.log ? softmax_columns<true>(p, x, y, columns) : softmax_columns<false>(p, x, y, columns);
  }
}

static bool supports(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  if (!(p.scale >= 0)) return false;  // the largest x would not have the largest exponential
  return p.inner != 1 || (p.x_axis == 1 && p.y_axis == 1 && (p.mask_col == 0 || p.mask_col == 1)) || p.axis <= 1;
}
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return p.inner == 1 ? p.outer : p.outer * column_parts(p);
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  return static_cast<double>(slices(problem)) * 40.0 +
         static_cast<double>(p.outer) * static_cast<double>(p.axis) * static_cast<double>(p.inner) * 16.0 / kWidth;
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
