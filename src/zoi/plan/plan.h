// A plan: a program, the kernel of each step, where every buffer lies, and the packed weights that its sessions share.
// Immutable once made; the weights are packed when the first session asks for them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../device/cpu/arena.h"
#include "../device/cpu/lanes.h"
#include "memory.h"
#include "program.h"
#include "select.h"

namespace zoi {

struct MemoryInfo {
  int64_t weights = 0, mapped = 0, arena = 0, scratch = 0, bookkeeping = 0, lower_bound = 0;
  int64_t total() const { return weights + arena + scratch + bookkeeping; }
};

/// Where one operand of one step is found.
enum class Place : uint8_t { none, arena, packed, plain };
struct Location {
  Place place = Place::none;
  int64_t offset = 0;  // in the arena or in the packed weights
  int64_t bytes = 0;
  const std::byte* plain = nullptr;  // constant data as the program holds it
  int64_t plain_bytes = 0;
};

struct PlannedStep {
  const Kernel* kernel = nullptr;
  std::string why;
  std::vector<Location> operands;
  int64_t slices = 1;
  int64_t scratch = 0;
  double flops = 0;
};

class Plan {
 public:
  /// Throws Error where the program is invalid or a step has no kernel. Allocates no tensor.
  Plan(Program program, Arch arch, const std::map<std::string, std::string>& pick = {});

  const Program& program() const { return program_; }
  const Layout& layout() const { return layout_; }
  const std::vector<PlannedStep>& steps() const { return steps_; }
  Arch arch() const { return arch_; }
  /// Exact bytes for a session of this many lanes.
  MemoryInfo memory(int lanes) const;
  /// Scratch of one lane, header included.
  int64_t lane_scratch() const { return lane_scratch_; }
  /// Args and calls of one session.
  int64_t bookkeeping() const { return bookkeeping_; }
  int64_t arg_bytes(size_t step) const;
  /// The packed weights; packs them at the first call. Thread-safe.
  const std::byte* weights() const;

 private:
  void locate();
  /// Gives back the pages of the file that were only read to be packed.
  void drop_packed() const;

  Program program_;
  Arch arch_;
  Layout layout_;
  std::vector<PlannedStep> steps_;
  int64_t packed_bytes_ = 0, mapped_bytes_ = 0, lane_scratch_ = kScratchHeader, bookkeeping_ = 0;
  mutable std::once_flag pack_once_;
  mutable Block weights_;
};

/// What one replayed call is: a function and its arguments.
struct Call {
  KernelFn run;
  const void* args;
  int32_t lanes;    // that share the work
  Meeting meeting;  // before this call
};

}  // namespace zoi
