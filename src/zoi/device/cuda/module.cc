#include "device/cuda/module.h"

namespace zoi::cuda {
namespace {

constexpr int kMaxShared = 8, kLocalBytes = 3,
              kRegisters = 4;  // of CUfunction_attribute

}  // namespace

Module::Module(Device& device, const std::string& image) : device_(device) {
  device.use();
  check(driver().module_load(&handle_, image.data()), "loading a kernel");
}

Module::~Module() {
  if (handle_) driver().module_unload(handle_);
}

Function::Function(std::shared_ptr<Module> module, const std::string& name, int shared)
    : module_(std::move(module)), shared_(shared) {
  device().use();
  check(driver().module_function(&handle_, module_->handle(), name.c_str()), ("finding the kernel " + name).c_str());
  if (shared > 48 * 1024)
    check(driver().function_set(handle_, kMaxShared, shared), ("shared memory of the kernel " + name).c_str());
}

int Function::registers() const {
  int value = 0;
  check(driver().function_get(&value, kRegisters, handle_), "reading a kernel's registers");
  return value;
}

int Function::local_bytes() const {
  int value = 0;
  check(driver().function_get(&value, kLocalBytes, handle_), "reading a kernel's local memory");
  return value;
}

int Function::blocks_per_multiprocessor(int threads) const {
  int value = 0;
  check(driver().occupancy(&value, handle_, threads, static_cast<size_t>(shared_)), "reading a kernel's occupancy");
  return value;
}

TensorMap tensor_map(const std::string& dtype, Pointer at, const std::vector<uint64_t>& sizes,
                     const std::vector<uint64_t>& strides, const std::vector<uint32_t>& box) {
  int type = -1;
  if (dtype == "u8" || dtype == "i8" || dtype == "e4m3") type = 0;
  if (dtype == "f16") type = 6;
  if (dtype == "f32") type = 7;
  if (dtype == "bf16") type = 9;
  const size_t rank = sizes.size();
  if (type < 0)
    throw Error(Fault::invalid, "a tensor map of " + dtype + "; supported are u8, i8, e4m3, f16, f32, bf16.");
  if (rank < 1 || rank > 5 || strides.size() + 1 != rank || box.size() != rank)
    throw Error(Fault::invalid,
                "a tensor map has 1 to 5 sizes, one stride "
                "fewer, and as many sizes of its box.");
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  TensorMap map;
  constexpr int kSwizzle128 = 3, kPromote256 = 3;
  check(driver().tensor_map(&map, type, static_cast<uint32_t>(rank), at, sizes.data(), strides.data(), box.data(),
                            steps, 0, kSwizzle128, kPromote256, 0),
        "making a tensor map (addresses and strides must be multiples of 16 "
        "bytes)");
  return map;
}

}  // namespace zoi::cuda
