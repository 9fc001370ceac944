// One row of `inner` elements after another.
#include <cstring>

#include "gather.h"

namespace zoi {
namespace {

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const GatherArgs*>(raw);
  const GatherProblem& p = args.problem;
  const Range range = lane_range(p.outer * p.indices, lane);
  const size_t bytes = static_cast<size_t>(p.inner * p.elem);
  for (int64_t row = range.begin; row < range.end; row++) {
    const int64_t o = row / p.indices, i = row % p.indices;
    int64_t index =
        p.index_dtype == kI32 ? static_cast<const int32_t*>(args.index)[i] : static_cast<const int64_t*>(args.index)[i];
    if (index < 0) index += p.axis;
    char* y = static_cast<char*>(args.y) + (o * p.y_outer + i * p.y_axis) * p.elem;
    if (index < 0 || index >= p.axis) {
      report(lane, Fault::index_out_of_range);
      std::memset(y, 0, bytes);
      continue;
    }
    std::memcpy(y, static_cast<const char*>(args.x) + (o * p.x_outer + index * p.x_axis) * p.elem, bytes);
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) {
  const auto& p = *static_cast<const GatherProblem*>(problem);
  return p.outer * p.indices;
}
double cost(const void* problem) {
  const auto& p = *static_cast<const GatherProblem*>(problem);
  return static_cast<double>(p.outer * p.indices) * (20.0 + static_cast<double>(p.inner * p.elem) / 16.0);
}

}  // namespace

extern const Kernel gather_generic = {
    .name = "gather_generic",
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
