#include "plan.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "../kernels/registry.h"

namespace zoi {

Plan::Plan(Program program, Arch arch, const std::map<std::string, std::string>& pick)
    : program_(std::move(program)), arch_(arch) {
  validate(program_);
  for (const auto& [name, kernel] : pick)
    if (std::none_of(program_.steps.begin(), program_.steps.end(), [&](const Step& s) { return s.name == name; }))
      throw Error("model '" + program_.name + "': pick names step '" + name + "', which does not exist");
  steps_.reserve(program_.steps.size());
  for (const Step& step : program_.steps) {
    const auto picked = pick.find(step.name);
    Choice choice = select(step, arch, picked == pick.end() ? std::string() : picked->second);
    PlannedStep planned;
    planned.kernel = choice.kernel;
    planned.why = std::move(choice.why);
    const void* problem = step.problem.data();
    planned.slices = choice.kernel->slices ? std::max<int64_t>(choice.kernel->slices(problem), 1) : 1;
    planned.scratch = choice.kernel->scratch ? align_up(choice.kernel->scratch(problem)) : 0;
    planned.flops = step.family->flops ? step.family->flops(problem) : 0;
    lane_scratch_ = std::max<int64_t>(lane_scratch_, static_cast<int64_t>(kScratchHeader) + planned.scratch);
    steps_.push_back(std::move(planned));
  }
  layout_ = lay_out(program_);
  locate();
}

int64_t Plan::arg_bytes(size_t step) const {
  const Step& s = program_.steps[step];
  return align_up(s.family->operand_count * 8 + s.family->problem_bytes);
}

void Plan::locate() {
  // A constant packed alike for equal problems is packed once.
  std::map<std::tuple<int32_t, int64_t, const Kernel*, int, std::vector<int64_t>>, int64_t> known;
  std::vector<bool> mapped(program_.buffers.size());
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = program_.steps[s];
    PlannedStep& planned = steps_[s];
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const OperandRef& ref = step.operands[i];
      Location location;
      if (ref.buffer >= 0) {
        const Buffer& buffer = program_.buffers[static_cast<size_t>(ref.buffer)];
        location.bytes = buffer.bytes - ref.offset;
        if (!buffer.is_constant) {
          location.place = Place::arena;
          location.offset = layout_.buffers[static_cast<size_t>(ref.buffer)].offset + ref.offset;
        } else {
          int64_t bytes = 0;
          if (step.family->operands[i].role == Role::weight && planned.kernel->packed_bytes)
            bytes = planned.kernel->packed_bytes(step.problem.data(), static_cast<int>(i));
          if (bytes > 0) {
            const auto key = std::make_tuple(ref.buffer, ref.offset, planned.kernel, static_cast<int>(i), step.problem);
            const auto [at, fresh] = known.emplace(key, packed_bytes_);
            if (fresh) packed_bytes_ += align_up(bytes);
            location = {Place::packed, at->second, bytes, buffer.constant + ref.offset, buffer.bytes - ref.offset};
          } else {
            location.place = Place::plain;
            location.plain = buffer.constant + ref.offset;
            if (!mapped[static_cast<size_t>(ref.buffer)]) mapped_bytes_ += buffer.bytes;
            mapped[static_cast<size_t>(ref.buffer)] = true;
          }
        }
      }
      planned.operands.push_back(location);
    }
    bookkeeping_ += arg_bytes(s);
  }
  const int64_t sets = program_.states.empty() ? 1 : 2;  // states alternate between two sets of arguments
  bookkeeping_ = sets * (bookkeeping_ + align_up(static_cast<int64_t>(steps_.size() * sizeof(Call))));
}

MemoryInfo Plan::memory(int lanes) const {
  return {packed_bytes_, mapped_bytes_, layout_.arena_bytes, lane_scratch_ * lanes, bookkeeping_, layout_.lower_bound};
}

void Plan::drop_packed() const {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const PlannedStep& step : steps_)
    for (const Location& location : step.operands) {
      if (location.place != Place::packed) continue;
      const uintptr_t begin = reinterpret_cast<uintptr_t>(location.plain) & -page;
      const uintptr_t end = reinterpret_cast<uintptr_t>(location.plain) + static_cast<uintptr_t>(location.plain_bytes);
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
}

const std::byte* Plan::weights() const {
  std::call_once(pack_once_, [&] {
    weights_ = Block(packed_bytes_);
    for (size_t s = 0; s < steps_.size(); ++s)
      for (size_t i = 0; i < steps_[s].operands.size(); ++i) {
        const Location& location = steps_[s].operands[i];
        if (location.place == Place::packed)
          steps_[s].kernel->pack(program_.steps[s].problem.data(), static_cast<int>(i), location.plain,
                                 weights_.data() + location.offset);
      }
    if (program_.mapped) drop_packed();
  });
  return weights_.data();
}

}  // namespace zoi
