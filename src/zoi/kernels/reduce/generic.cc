// Result after result: float32 in double, integers in int64 (which wraps around).
#include <cmath>
#include <limits>
#include <type_traits>

#include "../dtype.h"
#include "reduce.h"

namespace zoi {
namespace {

// Calls visit(offset) for every element of a strided space, in row-major order.
template <class Visit>
void for_each(int64_t dims, const int64_t* shape, const int64_t* stride, Visit visit) {
  int64_t index[kReduceDims] = {}, offset = 0;
  for (int64_t d = 0; d < dims; d++)
    if (shape[d] == 0) return;
  for (;;) {
    visit(offset);
    int64_t d = dims - 1;
    for (; d >= 0; d--) {
      offset += stride[d];
      if (++index[d] < shape[d]) break;
      offset -= index[d] * stride[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

int64_t count(int64_t dims, const int64_t* shape) {
  int64_t product = 1;
  for (int64_t d = 0; d < dims; d++) product *= shape[d];
  return product;
}

template <class T>
int64_t arg_extreme(const ReduceProblem& p, const T* x) {
  int64_t best = -1;
  for (int64_t i = 0; i < p.reduced_shape[0]; i++) {
    const T v = x[i * p.reduced_stride[0]];
    if (v != v) continue;  // NaN is never the extreme
    const T top = best < 0 ? v : x[best * p.reduced_stride[0]];
    const bool better = p.op == kReduceArgMax ? v > top : v < top;
    if (best < 0 || better || (p.select_last && v == top)) best = i;
  }
  return best < 0 ? 0 : best;
}

template <class T>
T reduce(const ReduceProblem& p, const T* x) {
  using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  using Wrap = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  using Limits = std::numeric_limits<T>;
  const auto over = [&](auto visit) {
    for_each(p.reduced_dims, p.reduced_shape, p.reduced_stride, [&](int64_t offset) { visit(Acc(x[offset])); });
  };
  const int64_t n = count(p.reduced_dims, p.reduced_shape);
  Wrap sum = 0;
  switch (p.op) {
    case kReduceMax:
    case kReduceMin: {
      const bool max = p.op == kReduceMax;
      Acc best = max ? (Limits::has_infinity ? -Limits::infinity() : Limits::min())
                     : (Limits::has_infinity ? Limits::infinity() : Limits::max());
      over([&](Acc v) { best = v != v || (max ? v > best : v < best) ? v : best; });
      return static_cast<T>(best);
    }
    case kReduceProd:
      sum = 1;
      over([&](Acc v) { sum *= static_cast<Wrap>(v); });
      break;
    case kReduceL1:
      over([&](Acc v) { sum += static_cast<Wrap>(v < 0 ? -static_cast<Wrap>(v) : v); });
      break;
    case kReduceL2:
    case kReduceSumSquare:
      over([&](Acc v) { sum += static_cast<Wrap>(v) * static_cast<Wrap>(v); });
      break;
    case kReduceLogSumExp: {
      double max = -INFINITY, total = 0;
      over([&](Acc v) { max = static_cast<double>(v) > max ? static_cast<double>(v) : max; });
      if (std::isinf(max)) max = 0;
      over([&](Acc v) { total += std::exp(static_cast<double>(v) - max); });
      return convert<T>(max + std::log(total));
    }
    default:
      over([&](Acc v) { sum += static_cast<Wrap>(v); });
      break;
  }
  const auto total = static_cast<Acc>(sum);
  if (p.op == kReduceMean) return n || !std::is_integral_v<T> ? static_cast<T>(total / static_cast<Acc>(n)) : T(0);
  if (p.op == kReduceL2) return convert<T>(std::sqrt(static_cast<double>(total)));
  if (p.op == kReduceLogSum) return convert<T>(std::log(static_cast<double>(total)));
  return static_cast<T>(total);
}

template <class T>
void run_slices(const ReduceArgs& args, Range range) {
  const ReduceProblem& p = args.problem;
  const bool arg = p.op == kReduceArgMax || p.op == kReduceArgMin;
  for (int64_t k = range.begin; k < range.end; k++) {
    const T* x = static_cast<const T*>(args.x);
    int64_t rest = k;
    for (int64_t d = p.kept_dims; d-- > 0; rest /= p.kept_shape[d]) x += rest % p.kept_shape[d] * p.kept_stride[d];
    if (arg)
      static_cast<int64_t*>(args.y)[k] = arg_extreme(p, x);
    else
      static_cast<T*>(args.y)[k] = reduce(p, x);
  }
}

int64_t slices(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  return count(p.kept_dims, p.kept_shape);
}

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const ReduceArgs*>(raw);
  const Range range = lane_range(slices(&args.problem), lane);
  switch (args.problem.dtype) {
    case kF32:
      return run_slices<float>(args, range);
    case kI32:
      return run_slices<int32_t>(args, range);
    default:
      return run_slices<int64_t>(args, range);
  }
}

bool supports(const void*) { return true; }
double cost(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  return 5.0 * static_cast<double>(slices(problem)) * static_cast<double>(count(p.reduced_dims, p.reduced_shape));
}

}  // namespace

extern const Kernel reduce_generic = {
    .name = "reduce_generic",
    .arch = Arch::generic,
    .run = run,
    .supports = supports,
    .slices = slices,
    .scratch = nullptr,
    .packed_bytes = nullptr,
    .pack = nullptr,
    .cost = cost,
    .exact = true,
};

}  // namespace zoi
