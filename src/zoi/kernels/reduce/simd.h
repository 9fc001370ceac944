// Reductions of float32 in vectors. `across`: the innermost reduced dimension is contiguous, so a vector is reduced to
// one number at the end of each result. `along`: the innermost kept dimension is contiguous, so a vector holds
// neighbouring results. Sums are kept in several parts and every kBlock steps moved to a total, which bounds how the
// rounding errors of long sums grow.
#pragma once

#include "reduce.h"

namespace zoi::ZOI_ISA {

inline constexpr int kVectors = 4;
inline constexpr int64_t kBlock = 64;  // steps of each of the kVectors parts before they are added to the total

// What is accumulated: mean, LogSum and L2 differ from these only in the last step.
template <int64_t op>
struct Accumulate {
  static constexpr bool kMax = op == kReduceMax, kMin = op == kReduceMin, kProd = op == kReduceProd;
  static constexpr bool kExtreme = kMax || kMin;
  ZOI_INLINE V start() { return set1(kMax ? -__builtin_inff() : kMin ? __builtin_inff() : kProd ? 1.0f : 0.0f); }
  ZOI_INLINE V join(V total, V part) {
    if constexpr (kExtreme) {  // NaN stays, whichever it is
      V best = kMax ? max_second(part, total) : min_second(part, total);
      return select(unordered(part, part), part, best);
    } else {
      return kProd ? mul(total, part) : add(total, part);
    }
  }
  ZOI_INLINE V step(V total, V x) {
    if constexpr (op == kReduceSumSquare) return fma(x, x, total);
    return join(total, op == kReduceL1 ? abs(x) : x);
  }
  ZOI_INLINE float across(V v) {
    if constexpr (kExtreme) {
      if (any(unordered(v, v))) return __builtin_nanf("");
      return kMax ? reduce_max(v) : reduce_min(v);
    } else if constexpr (kProd) {
      float lanes[kWidth], product = 1.0f;
      store(lanes, v);
      for (int i = 0; i < kWidth; i++) product *= lanes[i];
      return product;
    } else {
      return reduce_add(v);
    }
  }
};

ZOI_INLINE V finish(int64_t op, V v, V count) {
  switch (op) {
    case kReduceMean:
      return div(v, count);
    case kReduceL2:
      return sqrt(v);
    case kReduceLogSum:
      return log(v);
    default:
      return v;
  }
}

ZOI_INLINE int64_t product(const int64_t* shape, int64_t dims) {
  int64_t count = 1;
  for (int64_t d = 0; d < dims; d++) count *= shape[d];
  return count;
}

// Calls visit(offset) for all but the last of `dims` dimensions.
template <class Visit>
ZOI_INLINE void for_outer(int64_t dims, const int64_t* shape, const int64_t* stride, Visit visit) {
  int64_t index[kReduceDims] = {}, offset = 0;
  for (;;) {
    visit(offset);
    int64_t d = dims - 2;
    for (; d >= 0; d--) {
      offset += stride[d];
      if (++index[d] < shape[d]) break;
      offset -= index[d] * stride[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class Op>
ZOI_INLINE V sweep_across(const float* x, int64_t n) {
  V total = Op::start();
  constexpr int64_t kStep = kVectors * kWidth;
  int64_t i = 0;
  while (i + kStep <= n) {
    V part[kVectors];
    for (int k = 0; k < kVectors; k++) part[k] = Op::start();
    const int64_t end = n - i < kBlock * kStep ? n : i + kBlock * kStep;
    for (; i + kStep <= end; i += kStep)
      for (int k = 0; k < kVectors; k++) part[k] = Op::step(part[k], load(x + i + k * kWidth));
    total = Op::join(total, Op::join(Op::join(part[0], part[1]), Op::join(part[2], part[3])));
  }
  for (; i + kWidth <= n; i += kWidth) total = Op::step(total, load(x + i));
  if (i < n) {
    M m = first(static_cast<int>(n - i));
    total = select(m, Op::step(total, load(x + i, m)), total);
  }
  return total;
}

template <class Op>
ZOI_INLINE void reduce_across(const ReduceArgs& args, Range range) {
  const ReduceProblem& p = args.problem;
  const int64_t count = product(p.reduced_shape, p.reduced_dims), last = p.reduced_dims - 1;
  for (int64_t k = range.begin; k < range.end; k++) {
    const float* x = static_cast<const float*>(args.x);
    for (int64_t d = p.kept_dims, rest = k; d-- > 0; rest /= p.kept_shape[d])
      x += rest % p.kept_shape[d] * p.kept_stride[d];
    V total = Op::start();
    if (count != 0)
      for_outer(p.reduced_dims, p.reduced_shape, p.reduced_stride, [&](int64_t offset) __attribute__((always_inline)) {
        total = Op::join(total, sweep_across<Op>(x + offset, p.reduced_shape[last]));
      });
    const V result = finish(p.op, set1(Op::across(total)), set1(static_cast<float>(count)));
    store(static_cast<float*>(args.y) + k, result, first(1));
  }
}

// `vectors` vectors of neighbouring results, the last of which has the lanes `m` only.
template <class Op, int vectors>
ZOI_INLINE void sweep_along(const ReduceProblem& p, const float* x, float* y, M m) {
  const int64_t count = product(p.reduced_shape, p.reduced_dims), last = p.reduced_dims - 1;
  V total[vectors];
  for (int k = 0; k < vectors; k++) total[k] = Op::start();
  const auto at = [&](const float* q, int k) __attribute__((always_inline)) {
    return k + 1 < vectors ? load(q + k * kWidth) : load(q + k * kWidth, m);
  };
  if (p.reduced_dims == 0) {
    for (int k = 0; k < vectors; k++) total[k] = Op::step(total[k], at(x, k));
  } else if (count != 0) {
    const int64_t n = p.reduced_shape[last], stride = p.reduced_stride[last];
    for_outer(p.reduced_dims, p.reduced_shape, p.reduced_stride, [&](int64_t offset) __attribute__((always_inline)) {
      for (int64_t i = 0; i < n;) {
        V part[vectors];
        for (int k = 0; k < vectors; k++) part[k] = Op::start();
        for (const int64_t end = n - i < kBlock ? n : i + kBlock; i < end; i++)
          for (int k = 0; k < vectors; k++) part[k] = Op::step(part[k], at(x + offset + i * stride, k));
        for (int k = 0; k < vectors; k++) total[k] = Op::join(total[k], part[k]);
      }
    });
  }
  for (int k = 0; k < vectors; k++) {
    V result = finish(p.op, total[k], set1(static_cast<float>(count)));
    k + 1 < vectors ? store(y + k * kWidth, result) : store(y + k * kWidth, result, m);
  }
}

ZOI_INLINE bool is_across(const ReduceProblem& p) {
  return p.reduced_dims > 0 && p.reduced_stride[p.reduced_dims - 1] == 1;
}
ZOI_INLINE int64_t along_parts(const ReduceProblem& p) {
  return (p.kept_shape[p.kept_dims - 1] + kVectors * kWidth - 1) / (kVectors * kWidth);
}

template <class Op>
ZOI_INLINE void reduce_along(const ReduceArgs& args, Range range) {
  const ReduceProblem& p = args.problem;
  const int64_t inner = p.kept_shape[p.kept_dims - 1], parts = along_parts(p);
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t row = slice / parts, column = slice % parts * kVectors * kWidth;
    const float* x = static_cast<const float*>(args.x) + column;
    for (int64_t d = p.kept_dims - 1, rest = row; d-- > 0; rest /= p.kept_shape[d])
      x += rest % p.kept_shape[d] * p.kept_stride[d];
    float* y = static_cast<float*>(args.y) + row * inner + column;
    const int64_t columns = inner - column < kVectors * kWidth ? inner - column : kVectors * kWidth;
    const int vectors = static_cast<int>((columns + kWidth - 1) / kWidth);
    const M m = first(static_cast<int>(columns - (vectors - 1) * kWidth));
    switch (vectors) {
      case 1:
        sweep_along<Op, 1>(p, x, y, m);
        break;
      case 2:
        sweep_along<Op, 2>(p, x, y, m);
        break;
      case 3:
        sweep_along<Op, 3>(p, x, y, m);
        break;
      default:
        sweep_along<Op, 4>(p, x, y, m);
        break;
    }
  }
}

static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  if (is_across(p)) return product(p.kept_shape, p.kept_dims);
  return product(p.kept_shape, p.kept_dims - 1) * along_parts(p);
}

template <int64_t op>
static void run_op(const ReduceArgs& args, Range range) {
  using Op = Accumulate<op>;
  is_across(args.problem) ? reduce_across<Op>(args, range) : reduce_along<Op>(args, range);
}
static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const ReduceArgs*>(raw);
  const Range range = lane_range(slices(&args.problem), lane);
  switch (args.problem.op) {
    case kReduceMax:
      return run_op<kReduceMax>(args, range);
    case kReduceMin:
      return run_op<kReduceMin>(args, range);
    case kReduceProd:
      return run_op<kReduceProd>(args, range);
    case kReduceL1:
      return run_op<kReduceL1>(args, range);
    case kReduceL2:
    case kReduceSumSquare:
      return run_op<kReduceSumSquare>(args, range);
    default:
      return run_op<kReduceSum>(args, range);
  }
}

static bool supports(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  if (p.dtype != kF32 || p.op >= kReduceLogSumExp) return false;
  return is_across(p) || (p.kept_dims > 0 && p.kept_stride[p.kept_dims - 1] == 1);
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  return static_cast<double>(slices(problem)) * 30.0 +
         static_cast<double>(product(p.kept_shape, p.kept_dims)) *
             static_cast<double>(product(p.reduced_shape, p.reduced_dims)) * 1.5 / kWidth;
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
