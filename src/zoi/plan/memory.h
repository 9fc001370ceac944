// Lifetimes of buffers become fixed offsets in one arena.
#pragma once

#include <vector>

#include "program.h"

namespace zoi {

inline constexpr int64_t kAlignment = 64;
inline constexpr int64_t align_up(int64_t bytes) { return (bytes + kAlignment - 1) & -kAlignment; }

struct Placement {
  int64_t offset = -1;          // in the arena; -1: constant, or never used
  int64_t bytes = 0;            // aligned
  int64_t first = 0, last = 0;  // steps during which the buffer is alive, inclusive
  int32_t root = -1;            // the buffer whose memory this one shares in place, or itself
};

struct Layout {
  std::vector<Placement> buffers;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  // the largest sum of bytes alive at one step
};

Layout lay_out(const Program& program);

/// Throws Error if two buffers that live at the same time, and do not share memory on purpose, share a byte.
void validate(const Program& program, const Layout& layout);

}  // namespace zoi
