// A team of threads that share the steps of a run. The caller is lane 0; the others wait between runs, spinning for a
// moment and then asleep, or always spinning if armed. Nothing here allocates or locks once the team exists, and an
// armed team makes no system call.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace zoi {

/// How many lanes a session gets that asks for `wanted`, pinned to `cores` if there are any: at most as many as the
/// calling thread may use cores, nor than the whole cores that the CPU quotas of its cgroups pay for, because a lane
/// that waits for a throttled one gains nothing. Throws std::invalid_argument where `cores` names one that the thread
/// may not use, or one twice, or fewer than `wanted`.
int usable_lanes(int wanted, const std::vector<int>& cores);

/// Pins the calling thread. Pinning it again is checked against the cores that it had before it was first pinned.
void pin_this_thread(int core);

/// The whole cores that the CPU quotas of this process's cgroups pay for, at least 1; INT32_MAX without a quota.
int quota_cores();

/// Who waits for whom between two steps. Where lane 0 worked or will work alone, one direction is enough.
enum class Meeting : int32_t {
  none,
  all,
  gather,  // lane 0 waits for the others, which go on
  release  // the others wait for lane 0, which goes on
};

class Team {
 public:
  using Body = void (*)(void* context, int lane);

  /// Starts lanes 1 and up; with cores, lane i on cores[i]. Throws std::runtime_error if a thread cannot be made.
  Team(int lanes, const std::vector<int>& cores, bool armed, unsigned fp_state, Body body, void* context);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  /// False in a process that forked from the one that made the team: there the other lanes do not exist.
  bool alive() const;
  /// Calls the body on every lane, here as lane 0. The body must meet at the end whatever it needs to have met.
  void run();
  /// Every lane must come to the same meetings in the same order.
  void meet(int lane, Meeting meeting) {
    const uint32_t epoch = slots_[lane].epoch.load(std::memory_order_relaxed) + 1;
    slots_[lane].epoch.store(epoch, std::memory_order_release);
    if (lane == 0 ? meeting == Meeting::release : meeting == Meeting::gather) return;
    for (int other = 0; other < (meeting == Meeting::release ? 1 : lanes_); ++other)
      if (other != lane) await(slots_[other].epoch, epoch);
  }

 private:
  // Two cache lines: the prefetcher fetches them in pairs.
  struct alignas(128) Slot {
    std::atomic<uint32_t> epoch{0};
  };
  struct Start {
    Team* team;
    int lane;
  };

  static void* enter(void* start);
  void work(int lane);
  void stop();
  void await(const std::atomic<uint32_t>& epoch, uint32_t wanted) const {
    for (int i = 0; static_cast<int32_t>(epoch.load(std::memory_order_acquire) - wanted) < 0; ++i) {
      __builtin_ia32_pause();
      if (i > kPatience && !armed_) give_way(), i = 0;
    }
  }
  static void give_way();

  static constexpr int kPatience = 4000;  // polls, some tens of microseconds

  alignas(128) std::atomic<uint32_t> generation_{0};  // of runs
  alignas(128) std::atomic<uint32_t> sleepers_{0};
  alignas(128) int lanes_;
  bool armed_;
  unsigned fp_state_;
  std::atomic<bool> stopping_{false};
  Body body_;
  void* context_;
  uint32_t forks_;  // of this process's line when the team was made
  std::unique_ptr<Slot[]> slots_;
  std::vector<Start> starts_;
  std::vector<pthread_t> threads_;
};

}  // namespace zoi
