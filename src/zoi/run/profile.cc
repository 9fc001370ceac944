#include "profile.h"

#include <chrono>

namespace zoi {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double, std::nano>(Clock::now() - start).count(); }

}  // namespace

std::vector<std::vector<double>> profile(Session& session, int runs) {
  double overhead = 1e9;
  for (int i = 0; i < 1000; ++i) {
    const Clock::time_point start = Clock::now();
    overhead = std::min(overhead, since(start));
  }
  const size_t count = session.plan().steps().size();
  std::vector<std::vector<double>> times(count);
  for (int r = 0; r < runs; ++r)
    for (size_t s = 0; s < count; ++s) {
      const Clock::time_point start = Clock::now();
      session.run_step(s);
      times[s].push_back(std::max(since(start) - overhead, 0.0));
    }
  return times;
}

}  // namespace zoi
