// Code on the GPU: a loaded cubin, its functions, and the tensor maps that they
// copy by.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace zoi::cuda {

class Module {
 public:
  Module(Device& device, const std::string& image);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Device& device() const { return device_; }
  Handle handle() const { return handle_; }

 private:
  Device& device_;
  Handle handle_ = nullptr;
};

// A function with its dynamic shared memory set; keeps its module alive.
class Function {
 public:
  Function(std::shared_ptr<Module> module, const std::string& name, int shared);
  int registers() const;
  int local_bytes() const;
  // Blocks of this size that one multiprocessor holds at once.
  int blocks_per_multiprocessor(int threads) const;
  Handle handle() const { return handle_; }
  int shared() const { return shared_; }
  Device& device() const { return module_->device(); }

 private:
  std::shared_ptr<Module> module_;
  Handle handle_ = nullptr;
  int shared_;
};

// Of a tensor with `sizes` elements, innermost first and contiguous; `strides`
// in bytes of all the others; tiles of `box` elements land in the 128-byte
// swizzle. Reads past an end give zeros, writes past it are dropped.
TensorMap tensor_map(const std::string& dtype, Pointer at, const std::vector<uint64_t>& sizes,
                     const std::vector<uint64_t>& strides, const std::vector<uint32_t>& box);

}  // namespace zoi::cuda
