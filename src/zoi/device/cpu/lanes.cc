#include "lanes.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace zoi {
namespace {

std::atomic<uint32_t> forks{0};
uint32_t count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

struct Pinning {
  bool pinned = false;
  cpu_set_t before, after;
};
thread_local Pinning pinning;

/// The cores of this thread; if we pinned it, and nobody else has since, those that it had before.
cpu_set_t allowed_cores() {
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) != 0) throw std::runtime_error("cannot read this thread's core affinity");
  return pinning.pinned && CPU_EQUAL(&now, &pinning.after) ? pinning.before : now;
}

std::string list_of(const cpu_set_t& set) {
  std::string text;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) text += (text.empty() ? "" : ", ") + std::to_string(core);
  return text;
}

/// Quota over period of one cgroup folder, or 0 where there is none.
double quota_of(const std::string& folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream both(folder + "/cpu.max"); both >> quota >> period) {
    return quota == "max" || period <= 0 ? 0 : std::strtod(quota.c_str(), nullptr) / period;
  }
  double microseconds = 0;
  std::ifstream first(folder + "/cpu.cfs_quota_us"), second(folder + "/cpu.cfs_period_us");
  if (!(first >> microseconds) || !(second >> period) || microseconds <= 0 || period <= 0) return 0;
  return microseconds / period;
}

}  // namespace

int quota_cores() {
  double least = INT32_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::stringstream controllers(line.substr(first + 1, second - first - 1));
    bool unified = controllers.str().empty(), relevant = unified;
    for (std::string name; std::getline(controllers, name, ',');) relevant |= name == "cpu";
    if (!relevant) continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    // A quota holds for all groups below. Inside a container the upper part of the path may not be visible.
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      if (path == "/") path.clear();
      if (const double quota = quota_of(root + path); quota > 0) least = std::min(least, quota);
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return std::max(1, static_cast<int>(least));
}

int usable_lanes(int wanted, const std::vector<int>& cores) {
  const cpu_set_t allowed = allowed_cores();
  for (size_t i = 0; i < cores.size(); ++i) {
    const int core = cores[i];
    if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(core), &allowed))
      throw std::invalid_argument("core " + std::to_string(core) + " is not one that this thread may use; it may use " +
                                  list_of(allowed));
    if (std::find(cores.begin(), cores.begin() + static_cast<ptrdiff_t>(i), core) !=
        cores.begin() + static_cast<ptrdiff_t>(i))
      throw std::invalid_argument("core " + std::to_string(core) + " is named twice; every lane needs its own");
  }
  if (!cores.empty() && wanted > static_cast<int>(cores.size()))
    throw std::invalid_argument(std::to_string(wanted) + " lanes need as many cores; found " +
                                std::to_string(cores.size()));
  if (wanted <= 1) return 1;
  return std::min({wanted, CPU_COUNT(&allowed), quota_cores()});
}

void pin_this_thread(int core) {
  const cpu_set_t before = allowed_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("cannot pin this thread to core " + std::to_string(core) + ": " + std::strerror(errno));
  pinning = {true, before, set};
}

Team::Team(int lanes, const std::vector<int>& cores, bool armed, unsigned fp_state, Body body, void* context)
    : lanes_(lanes),
      armed_(armed),
      fp_state_(fp_state),
      body_(body),
      context_(context),
      forks_(count_forks()),
      slots_(new Slot[static_cast<size_t>(lanes)]),
      starts_(static_cast<size_t>(lanes)) {
  const cpu_set_t allowed = allowed_cores();
  // Signals are for the threads of the host.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = 0;
  for (int lane = 1; lane < lanes && failure == 0; ++lane) {
    starts_[static_cast<size_t>(lane)] = {this, lane};
    cpu_set_t set = allowed;  // not the one core that the creating thread may be pinned to
    if (!cores.empty()) {
      CPU_ZERO(&set);
      CPU_SET(static_cast<size_t>(cores[static_cast<size_t>(lane)]), &set);
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    pthread_attr_setstacksize(&attributes, size_t{1} << 20);
    pthread_t thread;
    failure = pthread_create(&thread, &attributes, enter, &starts_[static_cast<size_t>(lane)]);
    pthread_attr_destroy(&attributes);
    if (failure == 0) threads_.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure != 0) {
    stop();
    throw std::runtime_error(std::string("cannot start a thread for a lane: ") + std::strerror(failure));
  }
}

Team::~Team() {
  if (alive()) stop();
}

bool Team::alive() const { return forks.load(std::memory_order_relaxed) == forks_; }

void Team::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  futex(generation_, FUTEX_WAKE_PRIVATE, INT_MAX);
  for (pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void Team::run() {
  // A lane counts itself a sleeper before it looks at the generation a last time, and we look at the sleepers after
  // changing it: in one order or the other, it wakes.
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (!armed_ && sleepers_.load(std::memory_order_seq_cst) > 0) futex(generation_, FUTEX_WAKE_PRIVATE, INT_MAX);
  body_(context_, 0);
}

void Team::give_way() { sched_yield(); }

void* Team::enter(void* start) {
  const Start& self = *static_cast<Start*>(start);
  pthread_setname_np(pthread_self(), ("zoi-lane-" + std::to_string(self.lane)).c_str());
  _mm_setcsr(self.team->fp_state_);
  self.team->work(self.lane);
  return nullptr;
}

void Team::work(int lane) {
  for (uint32_t seen = 0;; ++seen) {
    for (int i = 0; generation_.load(std::memory_order_acquire) == seen; ++i) {
      __builtin_ia32_pause();
      if (armed_ || i < kPatience) continue;
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      if (generation_.load(std::memory_order_seq_cst) == seen) futex(generation_, FUTEX_WAIT_PRIVATE, seen);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (stopping_.load(std::memory_order_relaxed)) return;
    body_(context_, lane);
  }
}

}  // namespace zoi
