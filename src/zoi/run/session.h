// The executor: binds a plan's steps to memory once, then replays them. A run is a loop over {function, arguments}:
// no allocation, no lock, no system call.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "../device/cpu/arena.h"
#include "../plan/plan.h"

namespace zoi {

struct SessionOptions {
  std::vector<int> cores;
  int lanes = 0;  // 0: one for each of `cores`, or one
  bool armed = false, lock = false, huge_pages = false, flush_denormals = false;
  bool split_all = false;  // share even the steps that are too small to gain from it; for tests
};

class Session {
 public:
  Session(std::shared_ptr<const Plan> plan, const SessionOptions& options);

  /// Throws Error if a kernel reports bad run-time data, or if another thread is inside run().
  void run();
  /// One step of the next run, on this thread; for `profile`.
  void run_step(size_t step);
  void reset();
  /// The memory of a port; a state's output is where the last run wrote it, its input where the next run reads it.
  std::byte* input(size_t index) const;
  std::byte* output(size_t index) const;
  MemoryInfo memory() const { return allocated_; }
  int lanes() const { return lanes_; }
  const Plan& plan() const { return *plan_; }

 private:
  void bind(bool split_all);
  /// The calls of one run that fall to this lane, and the meetings between them.
  void replay(int lane);
  Lane lane_of(int index, int count) const {
    return {index, count, scratch_ + plan_->lane_scratch() * index + kScratchHeader};
  }
  uint32_t take_fault();
  void guard(size_t step);

  std::shared_ptr<const Plan> plan_;
  int lanes_;
  bool flush_denormals_;
  Block block_;
  MemoryInfo allocated_;
  std::vector<Call*> sets_;
  std::byte* scratch_ = nullptr;
  size_t parity_ = 0;
  const Call* current_ = nullptr;  // what the other lanes replay
  bool gather_at_end_ = false;
  std::unique_ptr<Team> team_;  // null where no step is shared
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace zoi
