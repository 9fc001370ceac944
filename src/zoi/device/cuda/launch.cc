#include "device/cuda/launch.h"

namespace zoi::cuda {
namespace {

constexpr int kClusterAttribute = 4;

}  // namespace

Launch::Launch(std::shared_ptr<Function> function, std::array<uint32_t, 3> grid, uint32_t threads, uint32_t cluster,
               const std::vector<std::string>& parameters)
    : function_(std::move(function)), parameters_(parameters) {
  if (!grid[0] || !grid[1] || !grid[2] || threads == 0 || threads > 1024 || cluster == 0 || grid[0] % cluster != 0)
    throw Error(Fault::invalid, "a launch of " + std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" +
                                    std::to_string(grid[2]) + " blocks of " + std::to_string(threads) +
                                    " threads in clusters of " + std::to_string(cluster) +
                                    ": each must be positive, and a cluster must divide the grid.");
  for (std::string& bytes : parameters_) pointers_.push_back(bytes.data());
  for (int i = 0; i < 3; ++i) config_.grid[i] = grid[i];
  config_.block[0] = threads;
  config_.block[1] = config_.block[2] = 1;
  config_.shared = static_cast<uint32_t>(function_->shared());
  attribute_.id = kClusterAttribute;
  attribute_.value[0] = cluster;
  attribute_.value[1] = attribute_.value[2] = 1;
  config_.attribute_count = cluster > 1 ? 1 : 0;
}

void Launch::run(Handle stream) {
  function_->device().use();
  config_.stream = stream;
  config_.attributes = &attribute_;
  check(driver().launch(&config_, function_->handle(), pointers_.data(), nullptr), "launching a kernel");
}

void Launch::patch(size_t index, const std::string& bytes) {
  if (index >= parameters_.size() || bytes.size() != parameters_[index].size())
    throw Error(Fault::invalid, "the launch has no parameter " + std::to_string(index) + " of " +
                                    std::to_string(bytes.size()) + " bytes.");
  std::memcpy(parameters_[index].data(), bytes.data(), bytes.size());
}

Buffer::Buffer(Device& device, size_t bytes) : device_(device), bytes_(bytes) {
  device.use();
  check(driver().alloc(&pointer_, bytes ? bytes : 1),
        ("reserving " + std::to_string(bytes) + " bytes on the GPU").c_str());
}

Buffer::~Buffer() {
  device_.use();
  driver().free(pointer_);
}

HostBuffer::HostBuffer(Device& device, size_t bytes) : device_(device), bytes_(bytes) {
  device.use();
  constexpr unsigned kPortable = 1, kMapped = 2;
  check(driver().host_alloc(&data_, bytes ? bytes : 1, kPortable | kMapped),
        ("pinning " + std::to_string(bytes) + " bytes of host memory").c_str());
}

HostBuffer::~HostBuffer() {
  device_.use();
  driver().host_free(data_);
}

Pointer HostBuffer::pointer() const {
  Pointer at = 0;
  check(driver().host_pointer(&at, data_, 0), "mapping host memory");
  return at;
}

Stream::Stream(Device& device) : device_(device) {
  device.use();
  constexpr unsigned kNonBlocking = 1;
  check(driver().stream_create(&handle_, kNonBlocking), "making a stream");
}

Stream::~Stream() {
  device_.use();
  driver().stream_destroy(handle_);
}

void Stream::synchronize() const {
  device_.use();
  check(driver().stream_synchronize(handle_), "waiting for a stream");
}

Event::Event(Device& device) : device_(device) {
  device.use();
  check(driver().event_create(&handle_, 0), "making an event");
}

Event::~Event() {
  device_.use();
  driver().event_destroy(handle_);
}

void Event::record(Handle stream) { check(driver().event_record(handle_, stream), "recording an event"); }

void Event::synchronize() const { check(driver().event_synchronize(handle_), "waiting for an event"); }

float Event::since(const Event& start) const {
  synchronize();
  float ms = 0;
  check(driver().event_elapsed(&ms, start.handle_, handle_), "reading the time between events");
  return ms;
}

void Graph::begin(Device& device, Handle stream) {
  device.use();
  constexpr int kThreadLocal = 1;
  check(driver().capture_begin(stream, kThreadLocal), "starting to capture a graph");
}

Graph::Graph(Device& device, Handle stream) : device_(device) {
  device.use();
  check(driver().capture_end(stream, &graph_), "capturing a graph");
  const Result result = driver().graph_instantiate(&exec_, graph_, 0);
  if (result != 0) driver().graph_destroy(graph_);
  check(result, "making a graph ready");
}

Graph::~Graph() {
  device_.use();
  driver().graph_exec_destroy(exec_);
  driver().graph_destroy(graph_);
}

void Graph::run(Handle stream) {
  device_.use();
  check(driver().graph_launch(exec_, stream), "launching a graph");
}

}  // namespace zoi::cuda
