// In a build with AddressSanitizer, a step may touch its operands and its scratch and nothing else of the session's
// memory, so that a kernel that leaves its operands is seen although all of them lie in one block. Otherwise nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace zoi {

inline void forbid_memory([[maybe_unused]] const std::byte* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, static_cast<size_t>(bytes));
#endif
}
inline void allow_memory([[maybe_unused]] const std::byte* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, static_cast<size_t>(bytes));
#endif
}

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kGuarded = true;
#else
inline constexpr bool kGuarded = false;
#endif

}  // namespace zoi
