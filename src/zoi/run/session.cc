#include "session.h"

#include <immintrin.h>

#include <cstring>

namespace zoi {
namespace {

/// Rounds to nearest, keeps or flushes denormals, masks every exception; restores the host's state at the end.
class FloatingPoint {
 public:
  explicit FloatingPoint(bool flush_denormals) : before_(_mm_getcsr()) {
    const unsigned wanted = 0x1f80u | (flush_denormals ? 0x8040u : 0u);
    if ((before_ & ~0x3fu) != wanted) _mm_setcsr(wanted);
  }
  ~FloatingPoint() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }

 private:
  unsigned before_;
};

}  // namespace

Session::Session(std::shared_ptr<const Plan> plan, const SessionOptions& options)
    : plan_(std::move(plan)), lanes_(std::max(options.lanes, 1)), flush_denormals_(options.flush_denormals) {
  allocated_ = plan_->memory(lanes_);
  block_ = Block(allocated_.arena + allocated_.scratch + allocated_.bookkeeping, {options.lock, options.huge_pages});
  bind();
}

void Session::bind() {
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
      calls[s] = {planned.kernel->run, cursor, 1, 0};
      cursor += plan_->arg_bytes(s);
    }
    sets_.push_back(calls);
  }
}

void Session::run() {
  if (busy_.test_and_set(std::memory_order_acquire))
    throw Error("model '" + plan_->program().name + "': this session is running in another thread; give each its own");
  {
    FloatingPoint state(flush_denormals_);
    const Call* call = sets_[parity_];
    const Lane lane{0, 1, scratch_ + kScratchHeader};
    for (const Call* end = call + plan_->steps().size(); call != end; ++call) call->run(call->args, lane);
  }
  if (sets_.size() > 1) parity_ ^= 1;
  auto* fault = reinterpret_cast<uint32_t*>(scratch_);
  const uint32_t found = *fault;
  *fault = 0;
  busy_.clear(std::memory_order_release);
  if (found)
    throw Error("model '" + plan_->program().name + "': an index given to Gather at run time is out of range");
}

void Session::run_step(size_t step) {
  const FloatingPoint state(flush_denormals_);
  const Call& call = sets_[parity_][step];
  call.run(call.args, Lane{0, 1, scratch_ + kScratchHeader});
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
