// Every operation, type and stride, a block of values at a time: each instruction is one loop over the block.
#include "scalar.h"

namespace zoi {
namespace {

constexpr int64_t kBlock = 64;

// Walks the iteration space in row-major order, from any element.
struct Walk {
  const PointwiseProblem& p;
  int64_t index[kPointwiseDims] = {};

  Walk(const PointwiseProblem& problem, int64_t element) : p(problem) {
    for (int64_t d = p.ndim; d-- > 0; element /= p.shape[d]) index[d] = element % p.shape[d];
  }
  int64_t offset(const int64_t* strides) const {
    int64_t sum = 0;
    for (int64_t d = 0; d < p.ndim; d++) sum += index[d] * strides[d];
    return sum;
  }
  void next() {
    for (int64_t d = p.ndim; d-- > 0;) {
      if (++index[d] < p.shape[d]) return;
      index[d] = 0;
    }
  }
};

int64_t elements(const PointwiseProblem& p) {
  int64_t count = 1;
  for (int64_t d = 0; d < p.ndim; d++) count *= p.shape[d];
  return count;
}

template <class T>
void run_block(const PointwiseArgs& args, int64_t first, int64_t count) {
  const PointwiseProblem& p = args.problem;
  T values[kPointwiseResultBase + kPointwiseCode][kBlock];
  int64_t offsets[kBlock];
  const auto locate = [&](const int64_t* strides) {
    Walk walk(p, first);
    for (int64_t i = 0; i < count; i++, walk.next()) offsets[i] = walk.offset(strides);
  };
  for (int64_t k = 0; k < p.inputs; k++) {
    locate(p.in_stride + k * kPointwiseDims);
    with_dtype(p.in_dtype[k], [&](auto tag) {
      const auto* x = static_cast<const typename decltype(tag)::type*>(args.x[k]);
      for (int64_t i = 0; i < count; i++) values[k][i] = convert<T>(x[offsets[i]]);
    });
  }
  for (int64_t k = 0; k < kPointwiseImms; k++)
    for (int64_t i = 0; i < count; i++) values[kPointwiseImmBase + k][i] = convert<T>(p.imm[k]);
  for (int64_t k = 0; k < p.length; k++) {
    const int64_t* code = p.code + 4 * k;
    const int64_t arity = pointwise_arity(code[0]);
    const T* a = values[code[1]];
    const T* b = arity > 1 ? values[code[2]] : a;
    const T* c = arity > 2 ? values[code[3]] : a;
    T* result = values[kPointwiseResultBase + k];
    for (int64_t i = 0; i < count; i++) result[i] = evaluate(code[0], a[i], b[i], c[i]);
  }
  locate(p.out_stride);
  const T* result = values[kPointwiseResultBase + p.length - 1];
  with_dtype(p.out_dtype, [&](auto tag) {
    using Y = typename decltype(tag)::type;
    auto* y = static_cast<Y*>(args.y);
    for (int64_t i = 0; i < count; i++) y[offsets[i]] = convert<Y>(result[i]);
  });
}

int64_t slices(const void* problem) {
  return (elements(*static_cast<const PointwiseProblem*>(problem)) + kBlock - 1) / kBlock;
}

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const PointwiseArgs*>(raw);
  const int64_t total = elements(args.problem);
  const Range range = lane_range(slices(&args.problem), lane);
  for (int64_t slice = range.begin; slice < range.end; slice++) {
    const int64_t first = slice * kBlock;
    const int64_t count = total - first < kBlock ? total - first : kBlock;
    switch (args.problem.compute) {
      case kF32:
        run_block<float>(args, first, count);
        break;
      case kF64:
        run_block<double>(args, first, count);
        break;
      default:
        run_block<int64_t>(args, first, count);
        break;
    }
  }
}

bool supports(const void*) { return true; }
double cost(const void* problem) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  return static_cast<double>(elements(p)) * (10.0 + 8.0 * static_cast<double>(p.inputs + p.length));
}

}  // namespace

extern const Kernel pointwise_generic = {
    .name = "pointwise_generic",
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
