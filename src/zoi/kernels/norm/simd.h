// Layer and RMS normalisation in float32 vectors: mean, variance, result, over a row that stays in L1. With a
// residual, y holds x + residual between the passes.
#pragma once

#include "norm.h"

namespace zoi::ZOI_ISA {

// Calls body(i, mask) for every whole vector of n elements, then for the rest. `Whole` stands for no mask.
struct Whole {};
ZOI_INLINE V load(const float* p, Whole) { return load(p); }
ZOI_INLINE void store(float* p, V v, Whole) { store(p, v); }
ZOI_INLINE V select(Whole, V yes, V) { return yes; }
template <class Body>
ZOI_INLINE void for_vectors(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) body(i, Whole{});
  if (i < n) body(i, first(static_cast<int>(n - i)));
}

// The sum of term(v) over a row: four sums side by side, which is faster and rounds less than one.
template <class Term>
ZOI_INLINE float sum_of(const float* v, int64_t n, Term term) {
  V s[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
    for (int k = 0; k < 4; k++) s[k] = add(s[k], term(load(v + i + k * kWidth)));
  for_vectors(n - i, [&](int64_t j, auto m) __attribute__((always_inline)) {
    s[0] = add(s[0], select(m, term(load(v + i + j, m)), zero()));
  });
  return reduce_add(add(add(s[0], s[1]), add(s[2], s[3])));
}

template <bool scaled, bool biased>
ZOI_INLINE void normalise(const float* v, const float* scale, const float* bias, float* y, int64_t n, V mean,
                          V factor) {
  for_vectors(n, [&](int64_t i, auto m) __attribute__((always_inline)) {
    V result = mul(sub(load(v + i, m), mean), factor);
    if constexpr (scaled && biased)
      result = fma(result, load(scale + i, m), load(bias + i, m));
    else if constexpr (scaled)
      result = mul(result, load(scale + i, m));
    else if constexpr (biased)
      result = add(result, load(bias + i, m));
    store(y + i, result, m);
  });
}

// x + residual into y (and sum), or x into sum. Returns where the row to normalise lies.
ZOI_INLINE const float* prepare(const NormArgs& args, int64_t row) {
  const NormProblem& p = args.problem;
  const int64_t n = p.cols;
  const float* x = args.x + row * p.x_row;
  float* y = args.y + row * p.y_row;
  float* sum = args.sum ? args.sum + row * p.s_row : nullptr;
  if (args.residual) {
    const float* residual = args.residual + row * p.r_row;
    for_vectors(n, [&](int64_t i, auto m) __attribute__((always_inline)) {
      V v = add(load(x + i, m), load(residual + i, m));
      store(y + i, v, m);
      if (sum) store(sum + i, v, m);
    });
    return y;
  }
  if (sum) for_vectors(n, [&](int64_t i, auto m) __attribute__((always_inline)) { store(sum + i, load(x + i, m), m); });
  return x;
}

// A few rows go through each pass together: while the last lanes of one row are summed, the next row is under way.
static void run(const void* raw, Lane lane) {
  constexpr int64_t kRows = 8, kGroup = 2048;  // rows and elements of a group, which stays in L1
  const auto& args = *static_cast<const NormArgs*>(raw);
  const NormProblem& p = args.problem;
  const int64_t n = p.cols, rms = p.rms;
  const float count = static_cast<float>(n), epsilon = static_cast<float>(p.epsilon);
  const int64_t fit = n * kRows <= kGroup ? kRows : n * 2 <= kGroup ? kGroup / n : 1;
  const Range range = lane_range(p.rows, lane);
  const float* v[kRows];
  float mean[kRows], variance[kRows];
  for (int64_t row = range.begin; row < range.end; row += fit) {
    const int64_t rows = range.end - row < fit ? range.end - row : fit;
    for (int64_t r = 0; r < rows; r++) v[r] = prepare(args, row + r);
    for (int64_t r = 0; r < rows; r++)
      mean[r] = rms ? 0.0f : sum_of(v[r], n, [](V u) __attribute__((always_inline)) { return u; }) / count;
    for (int64_t r = 0; r < rows; r++) {
      const V means = set1(mean[r]);
      const auto square = [&](V u) __attribute__((always_inline)) { return mul(sub(u, means), sub(u, means)); };
      variance[r] = sum_of(v[r], n, square) / count;
    }
    for (int64_t r = 0; r < rows; r++) {
      const V means = set1(mean[r]), factor = div(set1(1.0f), sqrt(set1(variance[r] + epsilon)));
      float* y = args.y + (row + r) * p.y_row;
      if (args.scale && args.bias)
        normalise<true, true>(v[r], args.scale, args.bias, y, n, means, factor);
      else if (args.scale)
        normalise<true, false>(v[r], args.scale, nullptr, y, n, means, factor);
      else if (args.bias)
        normalise<false, true>(v[r], nullptr, args.bias, y, n, means, factor);
      else
        normalise<false, false>(v[r], nullptr, nullptr, y, n, means, factor);
    }
  }
}

static bool supports(const void*) { return true; }
static int64_t slices(const void* problem) { return static_cast<const NormProblem*>(problem)->rows; }
static double cost(const void* problem) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  return static_cast<double>(p.rows) * (60.0 + static_cast<double>(p.cols) * 4.0 / kWidth);
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
