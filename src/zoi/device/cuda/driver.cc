#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

namespace zoi::cuda {
namespace {

constexpr int kOldest = 12000;  // cuLaunchKernelEx and tensor maps

Driver load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    throw Error(Fault::missing,
                "no CUDA driver: libcuda.so.1 could not be loaded. Install "
                "NVIDIA's driver, or run on the CPU.");
  Driver d;
  std::string lacking;
#define ZOI_CUDA_LOAD(name, symbol, parameters) \
  d.name = reinterpret_cast<Result(*) parameters>(dlsym(library, symbol)); \
  if (!d.name && lacking.empty()) lacking = symbol;
  ZOI_CUDA_ENTRIES(ZOI_CUDA_LOAD)
#undef ZOI_CUDA_LOAD
  if (d.driver_version) d.driver_version(&d.version);
  if (!lacking.empty() || d.version < kOldest)
    throw Error(Fault::missing, "the CUDA driver is too old: it offers CUDA " + std::to_string(d.version / 1000) + "." +
                                    std::to_string(d.version % 1000 / 10) +
                                    ", and 12.0 is needed. Update NVIDIA's driver.");
  const Result result = d.init(0);
  if (result != 0) {
    const char* text = nullptr;
    d.error_string(result, &text);
    throw Error(Fault::missing,
                std::string("the CUDA driver found no usable GPU: ") + (text ? text : "unknown error") + ".");
  }
  return d;
}

Fault fault_of(Result result) {
  switch (result) {
    case 2:
      return Fault::memory;
    case 100:
    case 3:
    case 4:
      return Fault::missing;
    case 209:
    case 218:
    case 222:
    case 801:
      return Fault::unsupported;
    case 46:
    case 719:
    case 716:
    case 717:
    case 718:
    case 714:
    case 715:
    case 700:
    case 702:
    case 709:
      return Fault::kernel;
    case 721:
    case 214:
    case 999:
      return Fault::lost;
    default:
      return Fault::invalid;
  }
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

void check(Result result, const char* call) {
  if (result == 0) return;
  const char* text = nullptr;
  driver().error_string(result, &text);
  throw Error(fault_of(result), std::string(call) + ": " + (text ? text : "unknown error") + " (CUDA error " +
                                    std::to_string(result) + ").");
}

Device& Device::at(int ordinal) {
  static std::mutex lock;
  static std::map<int, std::unique_ptr<Device>> devices;
  std::lock_guard guard(lock);
  auto& device = devices[ordinal];
  if (!device) device.reset(new Device(ordinal));
  return *device;
}

Device::Device(int ordinal) : ordinal_(ordinal) {
  int count = 0;
  check(driver().device_count(&count), "counting GPUs");
  if (ordinal < 0 || ordinal >= count)
    throw Error(Fault::missing,
                "no GPU cuda:" + std::to_string(ordinal) + "; this machine has " + std::to_string(count) + ".");
  check(driver().device_get(&device_, ordinal), "opening the GPU");
  check(driver().context_retain(&context_, device_), "making a context");
}

int Device::attribute(int which) const {
  int value = 0;
  check(driver().device_attribute(&value, which, device_), "reading an attribute of the GPU");
  return value;
}

std::string Device::name() const {
  char text[256] = {};
  check(driver().device_name(text, sizeof text, device_), "reading the GPU's name");
  return text;
}

size_t Device::memory() const {
  size_t bytes = 0;
  check(driver().device_memory(&bytes, device_), "reading the GPU's memory");
  return bytes;
}

int Device::capability() const { return attribute(75) * 10 + attribute(76); }

void Device::use() const {
  Handle current = nullptr;
  driver().context_get(&current);
  if (current != context_) check(driver().context_set(context_), "choosing the GPU");
}

}  // namespace zoi::cuda
