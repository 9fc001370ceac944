// Loads mutated .zoi files, and runs what loads: fuzz COUNT SEED FILE...
// A mutation is an error or a program whose steps stay inside their operands; the sanitizers stop at anything else.
// Mutation i of a seed is always the same one, and is named where a sanitizer stops: fuzz 1 SEED+i FILE... repeats it.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "plan/file.h"
#include "plan/plan.h"
#include "run/session.h"

namespace {

using Bytes = std::string;
using Random = std::mt19937_64;

constexpr double kMostWork = 3e6;  // flops or cycles of one step
constexpr int64_t kMostMemory = int64_t{8} << 20;
constexpr unsigned kMostSeconds = 60;  // for one mutation, under the sanitizers on a busy machine

uint64_t current = 0;

uint64_t below(Random& random, uint64_t limit) { return limit == 0 ? 0 : random() % limit; }

/// A value that is likely to be just wrong.
int64_t odd_value(Random& random, int64_t now) {
  constexpr int64_t kValues[] = {0,         1,         -1,        2,         3,         7,         8,
                                 63,        64,        255,       1 << 16,   INT32_MAX, INT32_MIN, 1LL << 31,
                                 1LL << 32, 1LL << 40, 1LL << 46, 1LL << 62, INT64_MAX, INT64_MIN, -64};
  switch (below(random, 6)) {
    case 0:
      return static_cast<int64_t>(static_cast<uint64_t>(now) + 1);
    case 1:
      return static_cast<int64_t>(static_cast<uint64_t>(now) - 1);
    case 2:
      return static_cast<int64_t>(static_cast<uint64_t>(now) * 2);
    case 3:
      return now / 2;
    case 4:
      return static_cast<int64_t>(below(random, 40));
    default:
      return kValues[below(random, std::size(kValues))];
  }
}

template <class T>
void disturb(Random& random, T& value) {
  value = static_cast<T>(odd_value(random, static_cast<int64_t>(value)));
}

void mutate_port(Random& random, zoi::Port& port) {
  switch (below(random, 5)) {
    case 0:
      return disturb(random, port.buffer);
    case 1:
      return disturb(random, port.offset);
    case 2:
      return disturb(random, port.bytes);
    case 3:
      port.dtype = static_cast<zoi::DType>(below(random, zoi::kDTypeCount));
      return;
    default:
      if (!port.shape.empty()) disturb(random, port.shape[below(random, port.shape.size())]);
  }
}

/// Changes one field of a program whose file stays well formed.
void mutate_field(Random& random, zoi::Program& program) {
  const uint64_t what = below(random, 16);
  if (what == 0 && !program.inputs.empty())
    return mutate_port(random, program.inputs[below(random, program.inputs.size())]);
  if (what == 1 && !program.outputs.empty())
    return mutate_port(random, program.outputs[below(random, program.outputs.size())]);
  if (what == 2 && !program.states.empty())
    return disturb(random, below(random, 2) ? program.states[0].input : program.states[0].output);
  if (what <= 4) {
    zoi::Buffer& buffer = program.buffers[below(random, program.buffers.size())];
    // A constant can only shrink: the writer copies it.
    if (buffer.is_constant)
      buffer.bytes = static_cast<int64_t>(below(random, static_cast<uint64_t>(buffer.bytes) + 1));
    else
      disturb(random, buffer.bytes);
    return;
  }
  if (program.steps.empty()) return;
  zoi::Step& step = program.steps[below(random, program.steps.size())];
  if (what <= 7) {
    zoi::OperandRef& ref = step.operands[below(random, step.operands.size())];
    if (below(random, 2))
      ref.buffer = static_cast<int32_t>(below(random, program.buffers.size() + 2)) - 1;
    else
      disturb(random, ref.offset);
  } else if (what == 8) {
    std::swap(step, program.steps[below(random, program.steps.size())]);
  } else if (!step.problem.empty()) {
    int64_t& word = step.problem[below(random, step.problem.size())];
    if (below(random, 4) == 0)
      word = step.problem[below(random, step.problem.size())];
    else
      disturb(random, word);
  }
}

uint64_t fnv1a(const Bytes& bytes, size_t count) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ static_cast<uint8_t>(bytes[i])) * 0x100000001b3u;
  return hash;
}

/// Makes the length and the checksum right (docs/plan_format.md), so that the reader goes on.
void seal(Bytes& bytes) {
  constexpr size_t kHeader = 64, kLength = 16, kMetadata = 24, kChecksum = 40;
  if (bytes.size() < kHeader) return;
  const uint64_t length = bytes.size();
  uint64_t metadata, zero = 0;
  std::memcpy(&bytes[kLength], &length, 8);
  std::memcpy(&metadata, &bytes[kMetadata], 8);
  if (metadata > bytes.size() - kHeader) return;
  std::memcpy(&bytes[kChecksum], &zero, 8);
  const uint64_t sum = fnv1a(bytes, kHeader + metadata);
  std::memcpy(&bytes[kChecksum], &sum, 8);
}

void mutate_bytes(Random& random, Bytes& bytes) {
  for (uint64_t n = below(random, 4) + 1; n > 0 && !bytes.empty(); --n) {
    // Most of a file is weights, of which any value will do.
    const size_t at = below(random, below(random, 8) ? std::min<size_t>(bytes.size(), 4096) : bytes.size());
    if (below(random, 2))
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
    else
      bytes[at] = static_cast<char>(random());
  }
  if (below(random, 8) == 0) bytes.resize(below(random, bytes.size() + 1));
  if (below(random, 16) == 0) bytes.insert(below(random, bytes.size() + 1), below(random, 100), 'x');
  if (below(random, 4)) seal(bytes);
}

/// A file in memory, with a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("zoi", 0)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    if (fd_ < 0) std::perror("memfd_create"), std::exit(2);
  }
  const std::string& put(const Bytes& bytes) {
    if (ftruncate(fd_, 0) != 0 || pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::perror("write"), std::exit(2);
    return path_;
  }

 private:
  int fd_;
  std::string path_;
};

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

/// Loads a file, and runs it where that is not too much work. Returns whether it ran.
bool digest(Random& random, const std::string& path) {
  const auto arch = static_cast<zoi::Arch>(below(random, static_cast<uint64_t>(zoi::runnable_arch("auto")) + 1));
  const auto plan = std::make_shared<const zoi::Plan>(zoi::load_program(path), arch);
  zoi::validate(plan->program(), plan->layout());
  for (size_t s = 0; s < plan->steps().size(); ++s) {
    const zoi::PlannedStep& step = plan->steps()[s];
    const void* problem = plan->program().steps[s].problem.data();
    const double cycles = step.kernel->cost ? step.kernel->cost(problem) : 0;
    if (!(step.flops < kMostWork && cycles < kMostWork)) return false;
  }
  const zoi::MemoryInfo memory = plan->memory(2);
  if (memory.total() > kMostMemory) return false;
  zoi::SessionOptions options;
  options.lanes = below(random, 64) == 0 ? 2 : 1;
  options.split_all = true;
  zoi::Session session(plan, options);
  for (size_t i = 0; i < plan->program().inputs.size(); ++i)
    for (int64_t b = 0; b < plan->program().inputs[i].bytes; ++b)
      session.input(i)[b] = static_cast<std::byte>(below(random, 4) ? 0 : random());
  session.run();
  session.run();
  return true;
}

void name_mutation(int) {
  char text[96];
  const int length =
      std::snprintf(text, sizeof text, "in mutation of seed %llu\n", static_cast<unsigned long long>(current));
  if (write(2, text, static_cast<size_t>(length)) < 0) _exit(3);
}

}  // namespace

extern "C" void __asan_on_error() { name_mutation(0); }

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: fuzz COUNT SEED FILE...\n"), 2;
  const uint64_t count = std::strtoull(argv[1], nullptr, 10), seed = std::strtoull(argv[2], nullptr, 10);
  for (int signal : {SIGALRM, SIGABRT})
    std::signal(signal, [](int number) {
      name_mutation(number);
      _exit(4);
    });
  MemoryFile file, base;
  uint64_t refused = 0, ran = 0;
  for (uint64_t i = 0; i < count; ++i) {
    current = seed + i;
    alarm(kMostSeconds);
    Random random(current);
    Bytes bytes = read(argv[3 + below(random, static_cast<uint64_t>(argc - 3))]);
    try {
      if (below(random, 3)) {
        zoi::Program program = zoi::load_program(base.put(bytes));
        for (uint64_t n = below(random, 3) + 1; n > 0; --n) mutate_field(random, program);
        const std::string written = "/dev/shm/zoi-fuzz-" + std::to_string(getpid());
        zoi::save_program(program, written);
        bytes = read(written);
        unlink(written.c_str());
      } else {
        mutate_bytes(random, bytes);
      }
      ran += digest(random, file.put(bytes));
    } catch (const std::exception&) {
      ++refused;
    }
  }
  std::printf("%llu mutations: %llu refused, %llu ran, %llu too large to run\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(refused), static_cast<unsigned long long>(ran),
              static_cast<unsigned long long>(count - refused - ran));
  return 0;
}
