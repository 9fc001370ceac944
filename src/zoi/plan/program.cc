#include "program.h"

#include <set>

namespace zoi {
namespace {

constexpr struct {
  const char* name;
  int64_t bytes;
} kDTypes[] = {{"float32", 4}, {"float64", 8}, {"float16", 2}, {"bfloat16", 2}, {"int8", 1},
               {"uint8", 1},   {"int16", 2},   {"uint16", 2},  {"int32", 4},    {"uint32", 4},
               {"int64", 8},   {"uint64", 8},  {"bool", 1}};
static_assert(std::size(kDTypes) == kDTypeCount);

constexpr int64_t kMaxBytes = int64_t{1} << 46;

[[noreturn]] void fail(const Program& program, const std::string& where, const std::string& what) {
  throw Error("model '" + program.name + "', " + where + ": " + what);
}

Extent extent_of(const Program& program, const OperandRef& ref) {
  if (ref.buffer < 0) return {0, 0, false, false};
  const Buffer& buffer = program.buffers[static_cast<size_t>(ref.buffer)];
  return {ref.offset, buffer.bytes - ref.offset, true, buffer.is_constant};
}

void validate_step(const Program& program, const Step& step) {
  const std::string where = "step '" + step.name + "'";
  if (!step.family) fail(program, where, "no such family of kernels");
  const Family& family = *step.family;
  if (static_cast<int64_t>(step.problem.size()) * 8 != family.problem_bytes)
    fail(program, where, std::string("the problem has another size than family '") + family.name + "' expects");
  if (static_cast<int64_t>(step.operands.size()) != family.operand_count)
    fail(program, where,
         "found " + std::to_string(step.operands.size()) + " operands; family '" + family.name + "' takes " +
             std::to_string(family.operand_count));
  Extent extents[kMaxOperands];
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const OperandRef& ref = step.operands[i];
    const Operand& operand = family.operands[i];
    const std::string what = std::string("operand '") + operand.name + "' ";
    if (ref.buffer < 0) {
      if (!operand.optional) fail(program, where, what + "is missing");
    } else {
      if (ref.buffer >= static_cast<int64_t>(program.buffers.size())) fail(program, where, what + "names no buffer");
      const Buffer& buffer = program.buffers[static_cast<size_t>(ref.buffer)];
      if (ref.offset < 0 || ref.offset > buffer.bytes) fail(program, where, what + "starts outside its buffer");
      if (operand.role == Role::out && (buffer.is_constant || buffer.is_input))
        fail(program, where, what + "would overwrite a constant or an input");
      if (operand.role == Role::weight && !buffer.is_constant) fail(program, where, what + "must be constant");
    }
    extents[i] = extent_of(program, ref);
  }
  if (const char* wrong = family.check(step.problem.data(), extents))
    fail(program, where, std::string("family '") + family.name + "': " + wrong);
}

void validate_port(const Program& program, const Port& port, bool input) {
  const std::string where = std::string(input ? "input" : "output") + " '" + port.name + "'";
  if (port.buffer < 0 || port.buffer >= static_cast<int64_t>(program.buffers.size()))
    fail(program, where, "names no buffer");
  const Buffer& buffer = program.buffers[static_cast<size_t>(port.buffer)];
  if (port.dtype < 0 || port.dtype >= kDTypeCount) fail(program, where, "has an unknown type");
  if (buffer.is_constant || (!input && buffer.is_input)) fail(program, where, "lies in memory that no step may write");
  int64_t bytes = dtype_bytes(port.dtype);
  for (int64_t size : port.shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) fail(program, where, "has an impossible shape");
  if (bytes != port.bytes || port.offset < 0 || port.offset > buffer.bytes || bytes > buffer.bytes - port.offset)
    fail(program, where, "does not fit its buffer");
  if (port.offset % dtype_bytes(port.dtype) != 0) fail(program, where, "is not aligned to its elements");
}

void validate_states(const Program& program) {
  std::set<int32_t> ports_in, ports_out;
  for (const State& state : program.states) {
    if (state.input < 0 || state.output < 0 || state.input >= static_cast<int64_t>(program.inputs.size()) ||
        state.output >= static_cast<int64_t>(program.outputs.size()))
      fail(program, "a state", "names no input or output");
    const Port& in = program.inputs[static_cast<size_t>(state.input)];
    const Port& out = program.outputs[static_cast<size_t>(state.output)];
    const Buffer& from = program.buffers[static_cast<size_t>(out.buffer)];
    const Buffer& into = program.buffers[static_cast<size_t>(in.buffer)];
    const std::string where = "state '" + out.name + "' -> '" + in.name + "'";
    if (in.shape != out.shape || in.dtype != out.dtype) fail(program, where, "shape and type must be equal");
    if (in.offset != 0 || out.offset != 0 || from.bytes != in.bytes || into.bytes != in.bytes)
      fail(program, where, "both must fill a buffer of their own");
    if (!ports_in.insert(in.buffer).second || !ports_out.insert(out.buffer).second)
      fail(program, where, "the buffer is part of another state");
    for (const Port& port : program.outputs)
      if (&port != &out && port.buffer == out.buffer) fail(program, where, "another output shares its buffer");
    for (const Port& port : program.inputs)
      if (&port != &in && port.buffer == in.buffer) fail(program, where, "another input shares its buffer");
  }
}

}  // namespace

int64_t dtype_bytes(DType dtype) { return kDTypes[dtype].bytes; }
const char* dtype_name(DType dtype) { return kDTypes[dtype].name; }
DType parse_dtype(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == kDTypes[i].name) return static_cast<DType>(i);
  throw Error("unknown element type '" + name + "'");
}

void validate(const Program& program) {
  int64_t total = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.bytes < 0 || buffer.bytes > kMaxBytes || __builtin_add_overflow(total, buffer.bytes, &total) ||
        total > kMaxBytes)
      fail(program, "buffer '" + buffer.name + "'", "has an impossible size");
  }
  std::set<std::string> names;
  for (const Port& port : program.inputs) {
    validate_port(program, port, true);
    if (!names.insert(port.name).second) fail(program, "input '" + port.name + "'", "the name is taken");
  }
  names.clear();
  for (const Port& port : program.outputs) {
    validate_port(program, port, false);
    if (!names.insert(port.name).second) fail(program, "output '" + port.name + "'", "the name is taken");
  }
  validate_states(program);
  names.clear();
  for (const Step& step : program.steps) {
    validate_step(program, step);
    if (!names.insert(step.name).second) fail(program, "step '" + step.name + "'", "the name is taken");
  }
}

}  // namespace zoi
