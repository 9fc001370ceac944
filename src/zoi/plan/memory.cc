#include "memory.h"

#include <algorithm>
#include <numeric>

namespace zoi {
namespace {

/// A buffer and those that later take over its memory in place: placed as one block.
struct Block {
  int64_t bytes, first, last;
  int64_t offset;
  std::vector<int32_t> members;
};

std::vector<Placement> lifetimes(const Program& program) {
  const int64_t end = static_cast<int64_t>(program.steps.size());
  std::vector<Placement> result(program.buffers.size());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i].bytes = align_up(std::max<int64_t>(program.buffers[i].bytes, 1));
    result[i].first = end + 1;
    result[i].last = -1;
    result[i].root = static_cast<int32_t>(i);
  }
  const auto use = [&](int32_t buffer, int64_t step) {
    Placement& p = result[static_cast<size_t>(buffer)];
    p.first = std::min(p.first, step);
    p.last = std::max(p.last, step);
  };
  for (int64_t s = 0; s < end; ++s)
    for (const OperandRef& ref : program.steps[static_cast<size_t>(s)].operands)
      if (ref.buffer >= 0) use(ref.buffer, s);
  // Inputs keep their values and outputs may be read at any time between runs.
  for (const auto* ports : {&program.inputs, &program.outputs})
    for (const Port& port : *ports) {
      use(port.buffer, -1);
      use(port.buffer, end);
    }
  return result;
}

/// Lets each step's result take the memory of an input that dies there, where the family allows it.
void share_in_place(const Program& program, std::vector<Placement>& buffers) {
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    if (!step.family->in_place) continue;
    std::vector<int32_t> taken;  // another result of the step may not take the same memory
    for (int64_t o = 0; o < step.family->operand_count; ++o) {
      const OperandRef& out = step.operands[static_cast<size_t>(o)];
      if (step.family->operands[o].role != Role::out || out.buffer < 0) continue;
      Placement& target = buffers[static_cast<size_t>(out.buffer)];
      if (target.first != static_cast<int64_t>(s) || target.root != out.buffer) continue;
      for (int64_t i = 0; i < step.family->operand_count; ++i) {
        const OperandRef& in = step.operands[static_cast<size_t>(i)];
        if (step.family->operands[i].role != Role::in || in.buffer < 0 || in.offset != out.offset) continue;
        const Placement& source = buffers[static_cast<size_t>(in.buffer)];
        int uses = 0;
        for (const OperandRef& ref : step.operands) uses += ref.buffer == in.buffer;
        if (program.buffers[static_cast<size_t>(in.buffer)].is_constant || source.last != static_cast<int64_t>(s) ||
            source.bytes != target.bytes || uses != 1 || in.buffer == out.buffer ||
            std::find(taken.begin(), taken.end(), source.root) != taken.end() ||
            !step.family->in_place(step.problem.data(), static_cast<int>(i)))
          continue;
        target.root = source.root;
        taken.push_back(source.root);
        break;
      }
    }
  }
}

std::vector<Block> blocks_of(const Program& program, const std::vector<Placement>& buffers) {
  std::vector<Block> blocks;
  std::vector<int32_t> at(buffers.size(), -1);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Placement& p = buffers[i];
    if (program.buffers[i].is_constant || p.last < p.first) continue;
    int32_t& slot = at[static_cast<size_t>(p.root)];
    if (slot < 0) {
      slot = static_cast<int32_t>(blocks.size());
      blocks.push_back({p.bytes, p.first, p.last, -1, {}});
    }
    Block& block = blocks[static_cast<size_t>(slot)];
    block.first = std::min(block.first, p.first);
    block.last = std::max(block.last, p.last);
    block.members.push_back(static_cast<int32_t>(i));
  }
  return blocks;
}

/// Places blocks in this order, each in the tightest gap between those alive at the same time. Returns the peak.
int64_t place(std::vector<Block>& blocks, const std::vector<size_t>& order) {
  int64_t peak = 0;
  std::vector<const Block*> placed;
  for (size_t index : order) {
    Block& block = blocks[index];
    std::vector<const Block*> rivals;
    for (const Block* other : placed)
      if (other->first <= block.last && block.first <= other->last) rivals.push_back(other);
    std::sort(rivals.begin(), rivals.end(), [](const Block* a, const Block* b) { return a->offset < b->offset; });
    int64_t best = -1, best_gap = INT64_MAX, end = 0;
    for (const Block* rival : rivals) {
      const int64_t gap = rival->offset - end;
      if (gap >= block.bytes && gap < best_gap) best = end, best_gap = gap;
      end = std::max(end, rival->offset + rival->bytes);
    }
    block.offset = best >= 0 ? best : end;
    peak = std::max(peak, block.offset + block.bytes);
    placed.push_back(&block);
  }
  return peak;
}

int64_t alive_bytes(const std::vector<Block>& blocks, int64_t steps) {
  int64_t most = 0;
  for (int64_t s = -1; s <= steps; ++s) {
    int64_t sum = 0;
    for (const Block& block : blocks)
      if (block.first <= s && s <= block.last) sum += block.bytes;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

Layout lay_out(const Program& program) {
  Layout layout;
  layout.buffers = lifetimes(program);
  share_in_place(program, layout.buffers);
  std::vector<Block> blocks = blocks_of(program, layout.buffers);
  layout.lower_bound = alive_bytes(blocks, static_cast<int64_t>(program.steps.size()));

  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto area = [&](size_t i) {
    return static_cast<double>(blocks[i].bytes) * static_cast<double>(blocks[i].last - blocks[i].first + 1);
  };
  const auto by_size = [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; };
  const auto by_area = [&](size_t a, size_t b) { return area(a) > area(b); };
  const auto by_time = [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; };
  layout.arena_bytes = INT64_MAX;
  std::vector<Block> best;
  const auto attempt = [&](auto less) {
    std::stable_sort(order.begin(), order.end(), less);
    const int64_t peak = place(blocks, order);
    if (peak < layout.arena_bytes) layout.arena_bytes = peak, best = blocks;
  };
  attempt(by_size);
  attempt(by_area);
  attempt(by_time);
  for (const Block& block : best)
    for (int32_t member : block.members) layout.buffers[static_cast<size_t>(member)].offset = block.offset;
  return layout;
}

void validate(const Program& program, const Layout& layout) {
  for (size_t a = 0; a < layout.buffers.size(); ++a) {
    const Placement& p = layout.buffers[a];
    if (p.offset < 0) continue;
    if (p.offset % kAlignment != 0 || p.offset + program.buffers[a].bytes > layout.arena_bytes)
      throw Error("model '" + program.name + "': buffer '" + program.buffers[a].name + "' lies outside the arena");
    for (size_t b = 0; b < a; ++b) {
      const Placement& q = layout.buffers[b];
      if (q.offset < 0 || p.offset + p.bytes <= q.offset || q.offset + q.bytes <= p.offset) continue;
      const bool together = p.first <= q.last && q.first <= p.last;
      // In place, the later buffer begins at the very step that reads the earlier one for the last time.
      const bool handed_over = p.root == q.root && (p.first == q.last || q.first == p.last);
      if (together && !handed_over)
        throw Error("model '" + program.name + "': buffers '" + program.buffers[a].name + "' and '" +
                    program.buffers[b].name + "' live at the same time and share memory");
    }
  }
}

}  // namespace zoi
