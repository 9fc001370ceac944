// The C ABI over Plan and Session: conversions and no logic. zoi.h says what each call means.
#include <exception>

#include "../plan/file.h"
#include "session.h"
#include "zoi.h"

struct zoi_plan {
  std::shared_ptr<const zoi::Plan> plan;
};
struct zoi_session {
  zoi::Session session;
};

namespace {

static_assert(static_cast<int>(ZOI_FLOAT32) == static_cast<int>(zoi::kF32));
static_assert(static_cast<int>(ZOI_INT64) == static_cast<int>(zoi::kI64));
static_assert(static_cast<int>(ZOI_BOOL) == static_cast<int>(zoi::kBool));

// A fixed buffer, so that reporting an error needs no memory.
thread_local char last_error[1024] = "";

void set_error(const char* what) {
  size_t length = 0;
  while (what[length] && length + 1 < sizeof last_error) last_error[length] = what[length], ++length;
  last_error[length] = 0;
}

/// What `body` returns, or `otherwise` with the error noted.
template <class Body, class T>
T guarded(T otherwise, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    set_error(error.what());
  } catch (...) {
    set_error("unknown error");
  }
  return otherwise;
}

zoi_memory memory_of(const zoi::MemoryInfo& m) {
  return {m.weights, m.mapped, m.arena, m.scratch, m.bookkeeping, m.total()};
}

int describe(const std::vector<zoi::Port>& ports, size_t index, zoi_tensor* result) {
  if (index >= ports.size()) {
    set_error("no input or output of this number");
    return -1;
  }
  const zoi::Port& port = ports[index];
  *result = {port.name.c_str(), static_cast<zoi_dtype>(port.dtype), port.shape.size(), port.shape.data(),
             static_cast<size_t>(port.bytes)};
  return 0;
}

int find(const std::vector<zoi::Port>& ports, const char* name) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name) return static_cast<int>(i);
  set_error("no input or output of this name");
  return -1;
}

}  // namespace

extern "C" {

const char* zoi_last_error(void) { return last_error; }
const char* zoi_version(void) { return ZOI_VERSION; }

zoi_plan* zoi_plan_load(const char* path, const char* arch) {
  return guarded(static_cast<zoi_plan*>(nullptr), [&] {
    return new zoi_plan{std::make_shared<zoi::Plan>(zoi::load_program(path), zoi::runnable_arch(arch ? arch : "auto"))};
  });
}
void zoi_plan_free(zoi_plan* plan) { delete plan; }
const char* zoi_plan_name(const zoi_plan* plan) { return plan->plan->program().name.c_str(); }
size_t zoi_plan_input_count(const zoi_plan* plan) { return plan->plan->program().inputs.size(); }
size_t zoi_plan_output_count(const zoi_plan* plan) { return plan->plan->program().outputs.size(); }
int zoi_plan_input(const zoi_plan* plan, size_t index, zoi_tensor* result) {
  return describe(plan->plan->program().inputs, index, result);
}
int zoi_plan_output(const zoi_plan* plan, size_t index, zoi_tensor* result) {
  return describe(plan->plan->program().outputs, index, result);
}
int zoi_plan_find_input(const zoi_plan* plan, const char* name) { return find(plan->plan->program().inputs, name); }
int zoi_plan_find_output(const zoi_plan* plan, const char* name) { return find(plan->plan->program().outputs, name); }
zoi_memory zoi_plan_memory(const zoi_plan* plan, int lanes) { return memory_of(plan->plan->memory(lanes)); }

zoi_session* zoi_session_create(const zoi_plan* plan, const zoi_options* options) {
  return guarded(static_cast<zoi_session*>(nullptr), [&] {
    zoi::SessionOptions wanted;
    if (options) {
      if (options->cores) wanted.cores.assign(options->cores, options->cores + options->core_count);
      wanted.lanes = options->lanes;
      wanted.armed = options->armed != 0;
      wanted.lock = options->lock != 0;
      wanted.huge_pages = options->huge_pages != 0;
      wanted.flush_denormals = options->flush_denormals != 0;
    }
    return new zoi_session{zoi::Session(plan->plan, wanted)};
  });
}
void zoi_session_free(zoi_session* session) { delete session; }
int zoi_session_run(zoi_session* session) {
  return guarded(-1, [&] {
    session->session.run();
    return 0;
  });
}
void zoi_session_reset(zoi_session* session) { session->session.reset(); }
int zoi_session_lanes(const zoi_session* session) { return session->session.lanes(); }
zoi_memory zoi_session_memory(const zoi_session* session) { return memory_of(session->session.memory()); }
void* zoi_input_data(zoi_session* session, size_t index) {
  const bool known = index < session->session.plan().program().inputs.size();
  if (!known) set_error("no input of this number");
  return known ? session->session.input(index) : nullptr;
}
const void* zoi_output_data(const zoi_session* session, size_t index) {
  const bool known = index < session->session.plan().program().outputs.size();
  if (!known) set_error("no output of this number");
  return known ? session->session.output(index) : nullptr;
}

}  // extern "C"
