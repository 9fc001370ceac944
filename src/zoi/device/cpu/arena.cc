#include "arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace zoi {

Block::Block(int64_t bytes, BlockOptions options) : bytes_(bytes) {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (bytes < 0 || bytes > physical)
    throw std::runtime_error("cannot allocate " + std::to_string(bytes) + " bytes: the machine has " +
                             std::to_string(physical));
  mapped_ = static_cast<size_t>(bytes > 0 ? bytes : 1);
  // Huge pages must be asked for before the first touch, so populating comes after.
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error("cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  data_ = static_cast<std::byte*>(memory);
  madvise(data_, mapped_, options.huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (options.lock && mlock(data_, mapped_) != 0) {
    const std::string reason = std::strerror(errno);
    munmap(data_, mapped_);
    throw std::runtime_error("cannot lock " + std::to_string(bytes) + " bytes in memory: " + reason +
                             "; raise the memory-lock limit (ulimit -l)");
  }
  std::memset(data_, 0, mapped_);
}

Block::Block(Block&& other) noexcept { *this = std::move(other); }

Block& Block::operator=(Block&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Block::~Block() {
  if (data_) munmap(data_, mapped_);
}

}  // namespace zoi
