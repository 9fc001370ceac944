// One element after another.
#include <algorithm>

#include "copy.h"

namespace zoi {
namespace {

// Slices are indices of the outermost dimension, which may be the only one.
template <class T>
void copy(const CopyProblem& p, const T* x, T* y, int64_t d) {
  if (d == p.ndim) {
    *y = *x;
    return;
  }
  for (int64_t i = 0; i < p.shape[d]; i++) copy(p, x + i * p.x_stride[d], y + i * p.y_stride[d], d + 1);
}

template <class T>
void run_as(const CopyArgs& args, Lane lane) {
  const CopyProblem& p = args.problem;
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  const Range range = lane_range(p.ndim ? p.shape[0] : 1, lane);
  if (p.ndim == 0) {
    if (range.begin < range.end) *y = *x;
    return;
  }
  for (int64_t i = range.begin; i < range.end; i++) copy(p, x + i * p.x_stride[0], y + i * p.y_stride[0], 1);
}

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const CopyArgs*>(raw);
  switch (args.problem.elem) {
    case 1:
      return run_as<uint8_t>(args, lane);
    case 2:
      return run_as<uint16_t>(args, lane);
    case 4:
      return run_as<uint32_t>(args, lane);
    default:
      return run_as<uint64_t>(args, lane);
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  return p.ndim ? std::max<int64_t>(p.shape[0], 1) : 1;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const CopyProblem*>(problem);
  double count = 1;
  for (int64_t d = 0; d < p.ndim; d++) count *= static_cast<double>(p.shape[d]);
  return 4.0 * count;
}

}  // namespace

extern const Kernel copy_generic = {
    .name = "copy_generic",
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
