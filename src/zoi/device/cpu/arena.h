// One block of memory from the operating system: 64-byte aligned (page aligned, in fact), zeroed and faulted in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zoi {

struct BlockOptions {
  bool lock = false;        // mlock: never paged out; needs a memory-lock limit that allows it
  bool huge_pages = false;  // ask for transparent huge pages
};

class Block {
 public:
  Block() = default;
  /// Throws std::runtime_error naming the limit that was met.
  explicit Block(int64_t bytes, BlockOptions options = {});
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  size_t mapped_ = 0;
};

}  // namespace zoi
