// The contract between a kernel, the planner and the executor.
//
// A kernel is `void(const void* args, Lane)`: it reads a plain struct of operand pointers followed by its
// problem, and writes the caller's memory. It never allocates, locks, starts threads, throws, or knows who runs it.
// Its `Kernel` record says everything that a client may ask: planner, executor, tests, benchmarks, `zoi kernels`
// and the lab all read that record and nothing else.
//
// This header is included by translation units built for different ISAs, so it holds no inline function with
// external linkage: an AVX-512 copy of one could be the copy that the linker keeps for every caller.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zoi {

/// Element types of operands. The values are written into .zoi files: append only.
enum DType : int64_t { kF32 = 0, kF64, kF16, kBF16, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kBool, kDTypeCount };

/// One token per architecture: file suffix, namespace, table column, compile-flag key and `arch=` value.
enum class Arch : uint8_t { generic, avx2, avx512, kCount };

/// A worker's share of a step: it runs slices [slices*index/count, slices*(index+1)/count).
/// `scratch` is 64-byte aligned, private to the lane, and at least the record's `scratch` bytes long.
struct Lane {
  int32_t index;
  int32_t count;
  std::byte* scratch;
};

/// Faults a kernel reports for bad run-time data (an index out of range); the run fails, the output is defined.
enum class Fault : uint32_t { none = 0, index_out_of_range = 1 };

/// Each lane's scratch is preceded by one 64-byte header, whose first word is the fault of the current run.
inline constexpr size_t kScratchHeader = 64;
[[gnu::always_inline]] static inline void report(Lane lane, Fault fault) {
  *reinterpret_cast<uint32_t*>(lane.scratch - kScratchHeader) = static_cast<uint32_t>(fault);
}

struct Range {
  int64_t begin, end;
};
/// The slices of this lane. Fixed by (slices, index, count) alone, so results do not depend on timing.
[[gnu::always_inline]] static inline Range lane_range(int64_t slices, Lane lane) {
  if (lane.count == 1) return {0, slices};  // saves two divisions, which a small kernel would notice
  return {slices * lane.index / lane.count, slices * (lane.index + 1) / lane.count};
}

using KernelFn = void (*)(const void* args, Lane lane);

/// A problem is a struct of 8-byte words only: int64_t and double. `Field` names them in declaration order, which
/// is how problems are printed, checked by name from Python, and stored.
struct Field {
  const char* name;
  int64_t count;  // words
  bool real;      // double rather than int64_t
};

/// in: read. out: written. weight: constant data, which a kernel may repack once when the plan is loaded.
enum class Role : uint8_t { in, weight, out };
struct Operand {
  const char* name;
  Role role;
  bool optional;
};

/// What `check` may know of an operand: the bytes that may be touched before and from its address.
/// A missing optional operand has `present == false`.
struct Extent {
  int64_t before;
  int64_t bytes;
  bool present;
  bool constant;
};

/// The record of one kernel. All callbacks are pure functions of the problem.
struct Kernel {
  const char* name;  // family_dtypes_arch[_tile], e.g. "gemm_f32_avx512_12x32"
  Arch arch;
  KernelFn run;
  bool (*supports)(const void* problem);
  int64_t (*slices)(const void* problem);   // parts that may run on different lanes; nullptr: 1
  int64_t (*scratch)(const void* problem);  // bytes a lane; nullptr: 0
  // Bytes of `operand` (a present weight) in this kernel's own layout, 0 to use the plain one. nullptr: always 0.
  int64_t (*packed_bytes)(const void* problem, int operand);
  void (*pack)(const void* problem, int operand, const void* plain, void* packed);
  double (*cost)(const void* problem);  // estimated core cycles on one lane, for ordering
  bool exact;                           // same bits as `generic`
};

struct KernelEntry {
  const char* name;
  const Kernel* kernel;  // nullptr: not in this build
};

/// A family: one meaning, many kernels. The table lists the best first; the last is `generic`, which supports all.
struct Family {
  const char* name;
  const Operand* operands;
  int64_t operand_count;
  const Field* fields;
  int64_t field_count;
  int64_t problem_bytes;
  /// nullptr if `problem` is meaningful and stays inside `extents` (one per operand), else what is wrong.
  /// This is the only guard between a hostile file and the kernels: it must be complete and overflow-safe.
  const char* (*check)(const void* problem, const Extent* extents);
  /// Whether an out operand, whichever, may be the same memory as in operand `operand`; nullptr: never.
  bool (*in_place)(const void* problem, int operand);
  double (*flops)(const void* problem);
  const KernelEntry* kernels;
  int64_t kernel_count;
};

// A family's header lists its variants, best first, and ends with `generic`:
//   #define ZOI_GEMM_KERNELS(K) K(gemm_f32_avx512) K(gemm_f32_avx2) K(gemm_f32_generic)
// Each variant's file defines `extern const Kernel <name>`, constant-initialised; family.cc makes the table from the
// list. A variant that this build does not contain stays in the table with a null record.
#define ZOI_DECLARE_KERNEL(name) [[gnu::weak]] extern const Kernel name;
#define ZOI_KERNEL_ENTRY(name) {#name, &name},

// A kernel's args are one pointer per operand (null where a missing optional one), then the problem:
//   struct GemmArgs { const float* a; ...; float* c; GemmProblem problem; };
inline constexpr int64_t kMaxOperands = 16;

// One list of fields declares the struct and its reflection. I: integer, A: integers, R: real, S: reals.
#define ZOI_DECLARE_I(name) int64_t name;
#define ZOI_DECLARE_A(name, count) int64_t name[count];
#define ZOI_DECLARE_R(name) double name;
#define ZOI_DECLARE_S(name, count) double name[count];
#define ZOI_REFLECT_I(name) {#name, 1, false},
#define ZOI_REFLECT_A(name, count) {#name, count, false},
#define ZOI_REFLECT_R(name) {#name, 1, true},
#define ZOI_REFLECT_S(name, count) {#name, count, true},
#define ZOI_PROBLEM(Name, LIST) \
  struct Name { \
    LIST(ZOI_DECLARE_I, ZOI_DECLARE_A, ZOI_DECLARE_R, ZOI_DECLARE_S) \
  }; \
  inline constexpr Field k##Name##Fields[] = {LIST(ZOI_REFLECT_I, ZOI_REFLECT_A, ZOI_REFLECT_R, ZOI_REFLECT_S)};

}  // namespace zoi
