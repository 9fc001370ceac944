#include "session.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "../device/cpu/guard.h"

namespace zoi {
namespace {

/// MXCSR: rounds to nearest, masks every exception, keeps or flushes denormals.
constexpr unsigned fp_state(bool flush_denormals) { return 0x1f80u | (flush_denormals ? 0x8040u : 0u); }

/// Sets MXCSR, and restores the host's at the end.
class FloatingPoint {
 public:
  explicit FloatingPoint(bool flush_denormals) : before_(_mm_getcsr()) {
    const unsigned wanted = fp_state(flush_denormals);
    if ((before_ & ~0x3fu) != wanted) _mm_setcsr(wanted);
  }
  ~FloatingPoint() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }

 private:
  unsigned before_;
};

// What sharing a step costs: two meetings, and moving what the other lanes read and write from one core to another.
constexpr double kMeetingsNs = 400, kMovedNsPerByte = 0.3, kCyclesPerNs = 3;

/// How many lanes to share a step among: all of them or one, whichever is expected to be quicker.
int lanes_for(const PlannedStep& step, const void* problem, int lanes, bool split_all) {
  lanes = static_cast<int>(std::min<int64_t>(lanes, step.slices));
  if (lanes <= 1 || split_all) return lanes;
  double moved = 0;
  for (const Location& at : step.operands)
    if (at.place == Place::arena) moved += static_cast<double>(at.bytes);
  const double alone = step.kernel->cost ? step.kernel->cost(problem) / kCyclesPerNs : 0;
  // The slowest lane has this many slices.
  const double share = static_cast<double>((step.slices + lanes - 1) / lanes) / static_cast<double>(step.slices);
  return alone * share + kMeetingsNs + moved * kMovedNsPerByte * (1 - share) < alone ? lanes : 1;
}

}  // namespace

Session::Session(std::shared_ptr<const Plan> plan, const SessionOptions& options)
    : plan_(std::move(plan)),
      lanes_(usable_lanes(options.lanes > 0 ? options.lanes : static_cast<int>(options.cores.size()), options.cores)),
      flush_denormals_(options.flush_denormals) {
  allocated_ = plan_->memory(lanes_);
  if (!options.cores.empty()) pin_this_thread(options.cores[0]);
  block_ = Block(allocated_.arena + allocated_.scratch + allocated_.bookkeeping, {options.lock, options.huge_pages});
  bind(options.split_all);
  const Call* end = sets_[0] + plan_->steps().size();
  const auto shared = [](const Call& call) { return call.lanes > 1; };
  gather_at_end_ = end != sets_[0] && shared(end[-1]);
  if (std::any_of(static_cast<const Call*>(sets_[0]), end, shared))
    team_ = std::make_unique<Team>(
        lanes_, options.cores, options.armed, fp_state(flush_denormals_),
        [](void* session, int lane) { static_cast<Session*>(session)->replay(lane); }, this);
}

void Session::bind(bool split_all) {
  const std::byte* weights = plan_->weights();
  const Program& program = plan_->program();
  std::byte* arena = block_.data();
  scratch_ = arena + allocated_.arena;
  std::byte* cursor = scratch_ + allocated_.scratch;
  const size_t count = plan_->steps().size();
  for (size_t parity = 0; parity < (program.states.empty() ? 1u : 2u); ++parity) {
    auto* calls = reinterpret_cast<Call*>(cursor);
    cursor += align_up(static_cast<int64_t>(count * sizeof(Call)));
    for (size_t s = 0; s < count; ++s) {
      const Step& step = program.steps[s];
      const PlannedStep& planned = plan_->steps()[s];
      auto* pointers = reinterpret_cast<const std::byte**>(cursor);
      for (size_t i = 0; i < planned.operands.size(); ++i) {
        const Location& at = planned.operands[i];
        int64_t offset = at.offset;
        if (parity == 1)
          for (const State& state : program.states) {
            const int32_t in = program.inputs[static_cast<size_t>(state.input)].buffer;
            const int32_t out = program.outputs[static_cast<size_t>(state.output)].buffer;
            const int32_t buffer = step.operands[i].buffer;
            const auto base = [&](int32_t b) { return plan_->layout().buffers[static_cast<size_t>(b)].offset; };
            if (buffer == in) offset += base(out) - base(in);
            if (buffer == out) offset += base(in) - base(out);
          }
        pointers[i] = at.place == Place::arena    ? arena + offset
                      : at.place == Place::packed ? weights + offset
                      : at.place == Place::plain  ? at.plain
                                                  : nullptr;
      }
      std::memcpy(pointers + planned.operands.size(), step.problem.data(), step.problem.size() * 8);
      const int lanes = lanes_for(planned, step.problem.data(), lanes_, split_all);
      const bool after_shared = s > 0 && calls[s - 1].lanes > 1;
      const Meeting meeting = lanes > 1 ? (after_shared ? Meeting::all
                                           : s > 0      ? Meeting::release
                                                        : Meeting::none)
                                        : (after_shared ? Meeting::gather : Meeting::none);
      calls[s] = {planned.kernel->run, cursor, lanes, meeting};
      cursor += plan_->arg_bytes(s);
    }
    sets_.push_back(calls);
  }
}

void Session::replay(int lane) {
  const Call* call = current_;
  for (const Call* end = call + plan_->steps().size(); call != end; ++call) {
    if (call->meeting != Meeting::none) team_->meet(lane, call->meeting);
    if (lane < call->lanes) call->run(call->args, lane_of(lane, call->lanes));
  }
  if (gather_at_end_) team_->meet(lane, Meeting::gather);
}

void Session::run() {
  if (busy_.test_and_set(std::memory_order_acquire))
    throw Error("model '" + plan_->program().name + "': this session is running in another thread; give each its own");
  {
    FloatingPoint state(flush_denormals_);
    if (team_ && team_->alive()) {
      current_ = sets_[parity_];
      team_->run();
    } else {
      const Call* call = sets_[parity_];
      const Lane lane = lane_of(0, 1);
      for (const Call* end = call + plan_->steps().size(); call != end; ++call) {
        if constexpr (kGuarded) guard(static_cast<size_t>(call - sets_[parity_]));
        call->run(call->args, lane);
      }
      if constexpr (kGuarded) allow_memory(block_.data(), allocated_.arena + allocated_.scratch);
    }
  }
  if (sets_.size() > 1) parity_ ^= 1;
  const uint32_t fault = take_fault();
  busy_.clear(std::memory_order_release);
  if (fault) throw Error("model '" + plan_->program().name + "': an index given to Gather at run time is out of range");
}

void Session::guard(size_t step) {
  forbid_memory(block_.data(), allocated_.arena + allocated_.scratch);
  allow_memory(scratch_, static_cast<int64_t>(kScratchHeader) + plan_->steps()[step].scratch);
  const auto* pointers = static_cast<const std::byte* const*>(sets_[parity_][step].args);
  for (size_t i = 0; i < plan_->steps()[step].operands.size(); ++i) {
    const OperandRef& ref = plan_->program().steps[step].operands[i];
    if (plan_->steps()[step].operands[i].place == Place::arena)
      allow_memory(pointers[i] - ref.offset, plan_->program().buffers[static_cast<size_t>(ref.buffer)].bytes);
  }
}

uint32_t Session::take_fault() {
  uint32_t found = 0;
  for (int lane = 0; lane < lanes_; ++lane) {
    auto* fault = reinterpret_cast<uint32_t*>(scratch_ + plan_->lane_scratch() * lane);
    found |= *fault;
    *fault = 0;
  }
  return found;
}

void Session::run_step(size_t step) {
  const FloatingPoint state(flush_denormals_);
  const Call& call = sets_[parity_][step];
  call.run(call.args, lane_of(0, 1));
}

void Session::reset() {
  for (const State& state : plan_->program().states) {
    const Port& in = plan_->program().inputs[static_cast<size_t>(state.input)];
    std::memset(input(static_cast<size_t>(state.input)), 0, static_cast<size_t>(in.bytes));
    std::memset(output(static_cast<size_t>(state.output)), 0, static_cast<size_t>(in.bytes));
  }
}

std::byte* Session::input(size_t index) const {
  const Program& program = plan_->program();
  int32_t buffer = program.inputs[index].buffer;
  for (const State& state : program.states)
    if (static_cast<size_t>(state.input) == index && parity_ == 1)
      buffer = program.outputs[static_cast<size_t>(state.output)].buffer;
  return block_.data() + plan_->layout().buffers[static_cast<size_t>(buffer)].offset + program.inputs[index].offset;
}

std::byte* Session::output(size_t index) const {
  const Program& program = plan_->program();
  int32_t buffer = program.outputs[index].buffer;
  // Before a run of parity p a state's output of the last run lies where that run's successor reads its input.
  for (const State& state : program.states)
    if (static_cast<size_t>(state.output) == index && parity_ == 0)
      buffer = program.inputs[static_cast<size_t>(state.input)].buffer;
  return block_.data() + plan_->layout().buffers[static_cast<size_t>(buffer)].offset + program.outputs[index].offset;
}

}  // namespace zoi
