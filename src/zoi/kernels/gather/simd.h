// Gather by vector moves; the rows of the next indices are fetched while the current one is copied.
#pragma once

#include "gather.h"

namespace zoi::ZOI_ISA {

template <class Index>
ZOI_INLINE void gather(const GatherArgs& args, Lane lane) {
  constexpr int64_t kAhead = 2, kFetched = 1024;  // rows, bytes of a row
  const GatherProblem& p = args.problem;
  const Index* indices = static_cast<const Index*>(args.index);
  const Range range = lane_range(p.outer * p.indices, lane);
  const int64_t bytes = p.inner * p.elem, x_axis = p.x_axis * p.elem, y_axis = p.y_axis * p.elem;
  const uint64_t axis = static_cast<uint64_t>(p.axis);
  // Unsigned, so that one comparison sees both ends.
  const auto index_at = [&](int64_t i) {
    const int64_t index = indices[i];
    return static_cast<uint64_t>(index < 0 ? index + p.axis : index);
  };
  for (int64_t row = range.begin; row < range.end;) {
    const int64_t o = row / p.indices, begin = row - o * p.indices;
    const int64_t end = range.end - row < p.indices - begin ? begin + range.end - row : p.indices;
    const char* x = static_cast<const char*>(args.x) + o * p.x_outer * p.elem;
    char* y = static_cast<char*>(args.y) + o * p.y_outer * p.elem;
    const auto source = [&](int64_t i) __attribute__((always_inline)) -> const char* {
      const uint64_t index = index_at(i);
      if (__builtin_expect(index < axis, 1)) return x + static_cast<int64_t>(index) * x_axis;
      report(lane, Fault::index_out_of_range);
      return nullptr;
    };
    const auto copy_words = [&](auto word) __attribute__((always_inline)) {
      for (int64_t i = begin; i < end; i++) {
        const char* from = source(i);
        word = 0;
        if (from) __builtin_memcpy(&word, from, sizeof(word));
        __builtin_memcpy(y + i * y_axis, &word, sizeof(word));
      }
    };
    if (bytes == 4) {
      copy_words(uint32_t{});
    } else if (bytes == 8) {
      copy_words(uint64_t{});
    } else {
      for (int64_t i = begin; i < end; i++) {
        if (i + kAhead < end) {
          const uint64_t next = index_at(i + kAhead);
          if (next < axis)
            for (int64_t b = 0; b < bytes && b < kFetched; b += 64)
              __builtin_prefetch(x + static_cast<int64_t>(next) * x_axis + b);
        }
        if (const char* from = source(i))
          copy_bytes(y + i * y_axis, from, bytes);
        else
          __builtin_memset(y + i * y_axis, 0, static_cast<size_t>(bytes));
      }
    }
    row += end - begin;
  }
}

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const GatherArgs*>(raw);
  args.problem.index_dtype == kI32 ? gather<int32_t>(args, lane) : gather<int64_t>(args, lane);
}

static bool supports(const void*) { return true; }
static int64_t slices(const void* problem) {
  const auto& p = *static_cast<const GatherProblem*>(problem);
  return p.outer * p.indices;
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const GatherProblem*>(problem);
  return static_cast<double>(p.outer * p.indices) * (8.0 + static_cast<double>(p.inner * p.elem) / 16.0);
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, nullptr, nullptr, nullptr, cost, true};
}

}  // namespace zoi::ZOI_ISA
