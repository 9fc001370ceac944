#include "file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "../device/cpu/guard.h"
#include "../kernels/registry.h"
#include "memory.h"

namespace zoi {
namespace {

static_assert(std::endian::native == std::endian::little, "words are stored as they lie in memory");

// The last four bytes show a transfer that changed line ends.
constexpr char kMagic[8] = {'\x89', 'Z', 'O', 'I', '\r', '\n', '\x1a', '\n'};
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t metadata_bytes;  // follow the header
  uint64_t data_offset;     // of the constants; a multiple of 64
  uint64_t checksum;        // of the header, this word being 0, and the metadata
  uint64_t reserved[2];
};
static_assert(sizeof(Header) == 64);

uint64_t fnv1a(uint64_t hash, const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
  return hash;
}

uint64_t checksum(Header header, const void* metadata) {
  header.checksum = 0;
  return fnv1a(fnv1a(0xcbf29ce484222325u, &header, sizeof header), metadata, header.metadata_bytes);
}

/// Of all that gives the words of a problem and the operands of a step their meaning.
uint64_t signature(const Family& family) {
  std::string text = family.name;
  for (int64_t i = 0; i < family.field_count; ++i)
    text += std::string("|") + family.fields[i].name + (family.fields[i].real ? ":r" : ":i") +
            std::to_string(family.fields[i].count);
  for (int64_t i = 0; i < family.operand_count; ++i)
    text += std::string("|") + family.operands[i].name + ":" +
            std::to_string(static_cast<int>(family.operands[i].role)) + (family.operands[i].optional ? "?" : "");
  return fnv1a(0xcbf29ce484222325u, text.data(), text.size());
}

class Writer {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<uint32_t>(value.size()));
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what Writer wrote, and never past the end.
class Reader {
 public:
  Reader(const std::byte* data, size_t bytes) : at_(data), end_(data + bytes) {}
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  /// A count of things that take at least `each` bytes, so that no count makes us allocate more than the file holds.
  size_t count(size_t each) {
    const auto value = number<uint32_t>();
    if (value > static_cast<size_t>(end_ - at_) / each) throw Error("a count is larger than the file");
    return value;
  }
  std::string text() {
    const size_t length = count(1);
    std::string value(reinterpret_cast<const char*>(take(length)), length);
    if (!is_text(value)) throw Error("a name is not UTF-8 text");
    return value;
  }
  bool done() const { return at_ == end_; }

 private:
  const std::byte* take(size_t bytes) {
    if (bytes > static_cast<size_t>(end_ - at_)) throw Error("the metadata ends too early");
    const std::byte* start = at_;
    at_ += bytes;
    return start;
  }
  /// UTF-8 without zeros, so that a name is a C string and a Python string.
  static bool is_text(std::string_view value) {
    for (size_t i = 0; i < value.size();) {
      const auto at = [&](size_t j) { return static_cast<uint8_t>(j < value.size() ? value[j] : 0); };
      const uint8_t lead = at(i);
      const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
      if (lead == 0 || length == 0) return false;
      for (size_t k = 1; k < length; ++k)
        if ((at(i + k) & 0xc0) != 0x80) return false;
      // Too long a form, surrogates, and beyond the last code point.
      if ((lead == 0xe0 && at(i + 1) < 0xa0) || (lead == 0xed && at(i + 1) > 0x9f) ||
          (lead == 0xf0 && at(i + 1) < 0x90) || (lead == 0xf4 && at(i + 1) > 0x8f))
        return false;
      i += length;
    }
    return true;
  }

  const std::byte *at_, *end_;
};

void write_ports(Writer& out, const std::vector<Port>& ports) {
  out.number(static_cast<uint32_t>(ports.size()));
  for (const Port& port : ports) {
    out.text(port.name);
    out.number(static_cast<uint32_t>(port.dtype));
    out.number(static_cast<uint32_t>(port.shape.size()));
    for (int64_t size : port.shape) out.number(size);
    out.number(port.buffer);
    out.number(port.offset);
    out.number(port.bytes);
  }
}

std::vector<Port> read_ports(Reader& in) {
  std::vector<Port> ports(in.count(32));
  for (Port& port : ports) {
    port.name = in.text();
    const auto dtype = in.number<uint32_t>();
    if (dtype >= kDTypeCount) throw Error("'" + port.name + "' has an unknown element type");
    port.dtype = static_cast<DType>(dtype);
    port.shape.resize(in.count(8));
    for (int64_t& size : port.shape) size = in.number<int64_t>();
    port.buffer = in.number<int32_t>();
    port.offset = in.number<int64_t>();
    port.bytes = in.number<int64_t>();
  }
  return ports;
}

std::string write_metadata(const Program& program, uint64_t& data_bytes) {
  Writer out;
  out.text(program.name);
  out.number(static_cast<uint32_t>(program.buffers.size()));
  for (const Buffer& buffer : program.buffers) {
    out.text(buffer.name);
    out.number(static_cast<uint8_t>(buffer.is_constant));
    out.number(buffer.bytes);
    if (!buffer.is_constant) continue;
    out.number(data_bytes);
    data_bytes += static_cast<uint64_t>(align_up(buffer.bytes));
  }
  write_ports(out, program.inputs);
  write_ports(out, program.outputs);
  out.number(static_cast<uint32_t>(program.states.size()));
  for (const State& state : program.states) {
    out.number(state.input);
    out.number(state.output);
  }
  out.number(static_cast<uint32_t>(program.steps.size()));
  for (const Step& step : program.steps) {
    out.text(step.name);
    out.text(step.family->name);
    out.number(signature(*step.family));
    for (int64_t word : step.problem) out.number(word);
    for (const OperandRef& ref : step.operands) {
      out.number(ref.buffer);
      out.number(ref.offset);
    }
  }
  return out.bytes();
}

Step read_step(Reader& in) {
  Step step;
  step.name = in.text();
  const std::string family = in.text();
  step.family = find_family(family);
  const auto found = in.number<uint64_t>();
  if (!step.family)
    throw Error("step '" + step.name + "': this version has no family of kernels named '" + family + "'");
  if (found != signature(*step.family))
    throw Error("step '" + step.name + "': the family '" + family +
                "' has changed since; compile and save the model again");
  step.problem.resize(static_cast<size_t>(step.family->problem_bytes / 8));
  for (int64_t& word : step.problem) word = in.number<int64_t>();
  step.operands.resize(static_cast<size_t>(step.family->operand_count));
  for (OperandRef& ref : step.operands) {
    ref.buffer = in.number<int32_t>();
    ref.offset = in.number<int64_t>();
  }
  return step;
}

/// `data` holds `data_bytes` bytes of constants.
Program read_metadata(Reader in, const std::byte* data, uint64_t data_bytes) {
  Program program;
  program.name = in.text();
  program.buffers.resize(in.count(13));
  for (Buffer& buffer : program.buffers) {
    buffer.name = in.text();
    buffer.is_constant = in.number<uint8_t>() != 0;
    buffer.bytes = in.number<int64_t>();
    if (!buffer.is_constant) continue;
    const auto offset = in.number<uint64_t>();
    if (buffer.bytes < 0 || offset % kAlignment != 0 || offset > data_bytes ||
        static_cast<uint64_t>(buffer.bytes) > data_bytes - offset)
      throw Error("constant '" + buffer.name + "' lies outside the file");
    buffer.constant = data + offset;
  }
  program.inputs = read_ports(in);
  for (const Port& port : program.inputs) {
    if (port.buffer < 0 || static_cast<size_t>(port.buffer) >= program.buffers.size())
      throw Error("input '" + port.name + "' names no buffer");
    program.buffers[static_cast<size_t>(port.buffer)].is_input = true;
  }
  program.outputs = read_ports(in);
  program.states.resize(in.count(8));
  for (State& state : program.states) {
    state.input = in.number<int32_t>();
    state.output = in.number<int32_t>();
  }
  const size_t steps = in.count(16);
  for (size_t s = 0; s < steps; ++s) program.steps.push_back(read_step(in));
  if (!in.done()) throw Error("the metadata is longer than what it describes");
  return program;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) { throw Error("'" + path + "': " + what); }

/// A file that is closed when it goes out of scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat info;
    if (file.fd < 0 || fstat(file.fd, &info) != 0) fail(path, std::strerror(errno));
    if (!S_ISREG(info.st_mode)) fail(path, "is not a file");
    bytes_ = static_cast<size_t>(info.st_size);
    if (bytes_ < sizeof(Header)) fail(path, "is too short for a .zoi file");
    void* memory = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (memory == MAP_FAILED) fail(path, std::string("cannot be mapped: ") + std::strerror(errno));
    data_ = static_cast<const std::byte*>(memory);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data_) munmap(const_cast<std::byte*>(data_), bytes_);
  }
  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  const std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// The header, once every offset and length in it is known to be sound.
Header read_header(const Mapping& file) {
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) throw Error("is not a .zoi file");
  if (header.version != kVersion)
    throw Error("has format version " + std::to_string(header.version) + "; this build reads version " +
                std::to_string(kVersion) + ". Compile and save the model again");
  if (header.file_bytes != file.bytes())
    throw Error("is " + std::to_string(file.bytes()) + " bytes long instead of " + std::to_string(header.file_bytes) +
                "; it was cut short or changed");
  if (header.header_bytes != sizeof header || header.metadata_bytes > file.bytes() - sizeof header ||
      header.data_offset < sizeof header + header.metadata_bytes || header.data_offset > file.bytes() ||
      header.data_offset % kAlignment != 0)
    throw Error("the header is damaged");
  if (header.checksum != checksum(header, file.data() + sizeof header))
    throw Error("the checksum is wrong; it is damaged");
  return header;
}

/// Gives every constant a block of its own, so that AddressSanitizer sees what reads past its end.
void copy_constants(Program& program) {
  for (Buffer& buffer : program.buffers) {
    if (!buffer.is_constant) continue;
    void* copy = ::operator new(static_cast<size_t>(buffer.bytes), std::align_val_t{kAlignment});
    program.owners.emplace_back(copy, [](void* data) { ::operator delete(data, std::align_val_t{kAlignment}); });
    std::memcpy(copy, buffer.constant, static_cast<size_t>(buffer.bytes));
    buffer.constant = static_cast<const std::byte*>(copy);
  }
  program.mapped = false;
}

void write_all(int fd, const void* data, size_t bytes) {
  for (const char* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t written = write(fd, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error(std::strerror(errno));
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

void write_padding(int fd, uint64_t bytes) {
  static constexpr char kZeros[kAlignment] = {};
  write_all(fd, kZeros, bytes);
}

}  // namespace

void save_program(const Program& program, const std::string& path) {
  uint64_t data_bytes = 0;
  const std::string metadata = write_metadata(program, data_bytes);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.header_bytes = sizeof header;
  header.metadata_bytes = metadata.size();
  header.data_offset = static_cast<uint64_t>(align_up(static_cast<int64_t>(sizeof header + metadata.size())));
  header.file_bytes = header.data_offset + data_bytes;
  header.checksum = checksum(header, metadata.data());

  const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  const Descriptor file{open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0) fail(path, std::string("cannot be written: ") + std::strerror(errno));
  try {
    write_all(file.fd, &header, sizeof header);
    write_all(file.fd, metadata.data(), metadata.size());
    write_padding(file.fd, header.data_offset - sizeof header - metadata.size());
    for (const Buffer& buffer : program.buffers) {
      if (!buffer.is_constant) continue;
      write_all(file.fd, buffer.constant, static_cast<size_t>(buffer.bytes));
      write_padding(file.fd, static_cast<uint64_t>(align_up(buffer.bytes) - buffer.bytes));
    }
    if (fsync(file.fd) != 0 || rename(temporary.c_str(), path.c_str()) != 0) throw Error(std::strerror(errno));
  } catch (const Error& error) {
    unlink(temporary.c_str());
    fail(path, std::string("cannot be written: ") + error.what());
  }
}

Program load_program(const std::string& path) {
  const auto file = std::make_shared<Mapping>(path);
  try {
    const Header header = read_header(*file);
    Program program = read_metadata(Reader(file->data() + sizeof header, header.metadata_bytes),
                                    file->data() + header.data_offset, header.file_bytes - header.data_offset);
    program.owners.push_back(file);
    program.mapped = true;
    if constexpr (kGuarded) copy_constants(program);
    return program;
  } catch (const Error& error) {
    fail(path, error.what());
  }
}

}  // namespace zoi
