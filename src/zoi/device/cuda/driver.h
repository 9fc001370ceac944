// The CUDA driver, loaded when first asked for: no toolkit at build time, no
// library needed where there is no GPU. Every failure is an Error that carries
// the driver's code and the call that gave it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace zoi::cuda {

using Result = int;
using Pointer = uint64_t;
using Handle = void*;  // of a context, module, function, stream, event or graph

enum class Fault { missing, unsupported, memory, kernel, lost, invalid };

class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault(fault) {}
  Fault fault;
};

// As the driver lays them out.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
struct LaunchAttribute {
  int32_t id;
  int32_t pad;
  uint32_t value[16];
};
struct LaunchConfig {
  uint32_t grid[3], block[3], shared;
  Handle stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

// One line for each entry point: name of the field, exported symbol,
// parameters.
#define ZOI_CUDA_ENTRIES(X) \
  X(init, "cuInit", (unsigned)) \
  X(driver_version, "cuDriverGetVersion", (int*)) \
  X(error_string, "cuGetErrorString", (Result, const char**)) \
  X(device_count, "cuDeviceGetCount", (int*)) \
  X(device_get, "cuDeviceGet", (int*, int)) \
  X(device_name, "cuDeviceGetName", (char*, int, int)) \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, int)) \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t*, int)) \
  X(context_retain, "cuDevicePrimaryCtxRetain", (Handle*, int)) \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int)) \
  X(context_set, "cuCtxSetCurrent", (Handle)) \
  X(context_get, "cuCtxGetCurrent", (Handle*)) \
  X(context_synchronize, "cuCtxSynchronize", ()) \
  X(module_load, "cuModuleLoadData", (Handle*, const void*)) \
  X(module_unload, "cuModuleUnload", (Handle)) \
  X(module_function, "cuModuleGetFunction", (Handle*, Handle, const char*)) \
  X(function_set, "cuFuncSetAttribute", (Handle, int, int)) \
  X(function_get, "cuFuncGetAttribute", (int*, int, Handle)) \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int*, Handle, int, size_t)) \
  X(launch, "cuLaunchKernelEx", (const LaunchConfig*, Handle, void**, void**)) \
  X(tensor_map, "cuTensorMapEncodeTiled", \
    (TensorMap*, int, uint32_t, Pointer, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int, int, \
     int, int)) \
  X(alloc, "cuMemAlloc_v2", (Pointer*, size_t)) \
  X(free, "cuMemFree_v2", (Pointer)) \
  X(host_alloc, "cuMemHostAlloc", (void**, size_t, unsigned)) \
  X(host_free, "cuMemFreeHost", (void*)) \
  X(host_pointer, "cuMemHostGetDevicePointer_v2", (Pointer*, void*, unsigned)) \
  X(copy_in, "cuMemcpyHtoDAsync_v2", (Pointer, const void*, size_t, Handle)) \
  X(copy_out, "cuMemcpyDtoHAsync_v2", (void*, Pointer, size_t, Handle)) \
  X(fill, "cuMemsetD8Async", (Pointer, unsigned char, size_t, Handle)) \
  X(stream_create, "cuStreamCreate", (Handle*, unsigned)) \
  X(stream_destroy, "cuStreamDestroy_v2", (Handle)) \
  X(stream_synchronize, "cuStreamSynchronize", (Handle)) \
  X(capture_begin, "cuStreamBeginCapture_v2", (Handle, int)) \
  X(capture_end, "cuStreamEndCapture", (Handle, Handle*)) \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (Handle*, Handle, unsigned long long)) \
  X(graph_launch, "cuGraphLaunch", (Handle, Handle)) \
  X(graph_destroy, "cuGraphDestroy", (Handle)) \
  X(graph_exec_destroy, "cuGraphExecDestroy", (Handle)) \
  X(event_create, "cuEventCreate", (Handle*, unsigned)) \
  X(event_destroy, "cuEventDestroy_v2", (Handle)) \
  X(event_record, "cuEventRecord", (Handle, Handle)) \
  X(event_synchronize, "cuEventSynchronize", (Handle)) \
  X(event_elapsed, "cuEventElapsedTime", (float*, Handle, Handle))

struct Driver {
#define ZOI_CUDA_FIELD(name, symbol, parameters) Result(*name) parameters = nullptr;
  ZOI_CUDA_ENTRIES(ZOI_CUDA_FIELD)
#undef ZOI_CUDA_FIELD
  int version = 0;
};

// The loaded driver. Throws Error(missing) with the reason where there is none,
// each time it is asked.
const Driver& driver();

// Throws unless the result is success.
void check(Result result, const char* call);

// One GPU, through the context that CUDA's runtime and the frameworks share.
// Lives as long as the process.
class Device {
 public:
  static Device& at(int ordinal);
  int attribute(int which) const;
  std::string name() const;
  size_t memory() const;
  int capability() const;  // 90 for sm_90
  // Makes this device's context the thread's; cheap where it is already.
  void use() const;
  int ordinal() const { return ordinal_; }

 private:
  explicit Device(int ordinal);
  int ordinal_, device_ = 0;
  Handle context_ = nullptr;
};

}  // namespace zoi::cuda
