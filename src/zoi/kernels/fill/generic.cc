// One element after another.
#include <algorithm>

#include "fill.h"

namespace zoi {
namespace {

template <class T>
void fill(const FillProblem& p, T value, T* y, int64_t d) {
  if (d == p.ndim) {
    *y = value;
    return;
  }
  for (int64_t i = 0; i < p.shape[d]; i++) fill(p, value, y + i * p.y_stride[d], d + 1);
}

// Slices are indices of the outermost dimension, which may be the only one.
template <class T>
void run_as(const FillArgs& args, Lane lane) {
  const FillProblem& p = args.problem;
  const T value = static_cast<T>(p.bits);
  T* y = static_cast<T*>(args.y);
  const Range range = lane_range(p.ndim ? p.shape[0] : 1, lane);
  if (p.ndim == 0) {
    if (range.begin < range.end) *y = value;
    return;
  }
  for (int64_t i = range.begin; i < range.end; i++) fill(p, value, y + i * p.y_stride[0], 1);
}

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const FillArgs*>(raw);
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
  const auto& p = *static_cast<const FillProblem*>(problem);
  return p.ndim ? std::max<int64_t>(p.shape[0], 1) : 1;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const FillProblem*>(problem);
  double count = 1;
  for (int64_t d = 0; d < p.ndim; d++) count *= static_cast<double>(p.shape[d]);
  return 2.0 * count;
}

}  // namespace

extern const Kernel fill_generic = {
    .name = "fill_generic",
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
