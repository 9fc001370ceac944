// Launches made ready once and replayed: single kernels, and graphs of what a
// stream captured. Memory, streams and events.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda/module.h"

namespace zoi::cuda {

// A kernel with its grid and the bytes of each parameter; run() only hands them
// to the driver, which knows where in the parameter space each belongs.
class Launch {
 public:
  Launch(std::shared_ptr<Function> function, std::array<uint32_t, 3> grid, uint32_t threads, uint32_t cluster,
         const std::vector<std::string>& parameters);
  void run(Handle stream);
  // Overwrites a parameter: another pointer, another size.
  void patch(size_t index, const std::string& bytes);

 private:
  std::shared_ptr<Function> function_;
  LaunchConfig config_{};
  LaunchAttribute attribute_{};
  std::vector<std::string> parameters_;
  std::vector<void*> pointers_;
};

class Buffer {
 public:
  Buffer(Device& device, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Pointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }
  Device& device() const { return device_; }

 private:
  Device& device_;
  Pointer pointer_ = 0;
  size_t bytes_;
};

// Host memory that the GPU reads and writes where it lies.
class HostBuffer {
 public:
  HostBuffer(Device& device, size_t bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  void* data() const { return data_; }
  Pointer pointer() const;
  size_t bytes() const { return bytes_; }

 private:
  Device& device_;
  void* data_ = nullptr;
  size_t bytes_;
};

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Handle handle() const { return handle_; }
  void synchronize() const;

 private:
  Device& device_;
  Handle handle_ = nullptr;
};

class Event {
 public:
  explicit Event(Device& device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Handle stream);
  void synchronize() const;
  // Milliseconds from `start` to this one; waits for this one.
  float since(const Event& start) const;

 private:
  Device& device_;
  Handle handle_ = nullptr;
};

// What a stream was given between begin and end, replayed at once.
class Graph {
 public:
  static void begin(Device& device, Handle stream);
  Graph(Device& device, Handle stream);  // ends the capture
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void run(Handle stream);

 private:
  Device& device_;
  Handle graph_ = nullptr, exec_ = nullptr;
};

}  // namespace zoi::cuda
