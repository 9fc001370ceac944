// Time of each step, for finding what is slow. Not part of a run: the steps are timed one by one, on one lane.
#pragma once

#include <vector>

#include "session.h"

namespace zoi {

/// For each step, its time in nanoseconds in each of `runs` passes over the plan, the timer's own cost taken off.
std::vector<std::vector<double>> profile(Session& session, int runs);

}  // namespace zoi
