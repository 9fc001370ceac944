// A program: the flat list of problems over buffers that Python hands down, and that a .zoi file stores. It names no
// kernel, no ISA and no address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../kernels/kernel.h"

namespace zoi {

/// What is wrong with a program, a file or a request; the message names the model and the step.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Buffer {
  std::string name;
  int64_t bytes = 0;
  const std::byte* constant = nullptr;  // data, or null for working memory
  bool is_constant = false;
  bool is_input = false;
};

struct OperandRef {
  int32_t buffer = -1;  // -1: a missing optional operand
  int64_t offset = 0;   // bytes
};

struct Step {
  std::string name;
  const Family* family = nullptr;
  std::vector<int64_t> problem;  // the problem's words
  std::vector<OperandRef> operands;
};

struct Port {
  std::string name;
  DType dtype = kF32;
  std::vector<int64_t> shape;
  int32_t buffer = -1;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct State {
  int32_t input = 0, output = 0;  // indices of ports
};

struct Program {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Port> inputs, outputs;
  std::vector<State> states;
  std::vector<std::shared_ptr<const void>> owners;  // keep constant data alive
  bool mapped = false;  // constants lie in a mapped file, whose pages may be dropped and are read again at need
};

int64_t dtype_bytes(DType dtype);
const char* dtype_name(DType dtype);
/// Throws Error if there is no such type.
DType parse_dtype(const std::string& name);

/// Throws Error unless every step stays inside its buffers and every port is sound. All that follows relies on it.
void validate(const Program& program);

}  // namespace zoi
