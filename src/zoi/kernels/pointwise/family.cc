#include <iterator>

#include "../check.h"
#include "../dtype.h"
#include "arity.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {
    {"x0", Role::in, true}, {"x1", Role::in, true}, {"x2", Role::in, true},
    {"x3", Role::in, true}, {"x4", Role::in, true}, {"x5", Role::in, true},
    {"x6", Role::in, true}, {"x7", Role::in, true}, {"y", Role::out, false},
};

const char* check_code(const PointwiseProblem& p) {
  if (p.length < 1 || p.length > kPointwiseCode) return "the chain must have 1 to 24 instructions";
  for (int64_t i = 0; i < p.length; i++) {
    const int64_t* instruction = p.code + 4 * i;
    if (instruction[0] < 0 || instruction[0] >= kPwCount) return "unknown operation";
    for (int64_t j = 1; j <= pointwise_arity(instruction[0]); j++) {
      int64_t v = instruction[j];
      bool input = v >= 0 && v < p.inputs;
      bool imm = v >= kPointwiseImmBase && v < kPointwiseImmBase + kPointwiseImms;
      bool result = v >= kPointwiseResultBase && v < kPointwiseResultBase + i;
      if (!input && !imm && !result) return "an instruction reads a value that does not exist";
    }
  }
  return nullptr;
}

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  if (p.ndim < 0 || p.ndim > kPointwiseDims) return "there must be 0 to 6 dimensions";
  if (p.inputs < 0 || p.inputs > kPointwiseInputs) return "there must be 0 to 8 inputs";
  if (p.compute != kF32 && p.compute != kF64 && p.compute != kI64) return "computes in float32, float64 or int64 only";
  int64_t work = 1;
  for (int64_t d = 0; d < p.ndim; d++) {
    if (p.shape[d] < 0 || p.shape[d] > kMaxSize) return "a dimension is out of range";
    if (__builtin_mul_overflow(work, p.shape[d], &work) || work > kMaxWork) return "too much work";
    if (p.shape[d] > 1 && p.out_stride[d] == 0) return "the output overlaps itself";
  }
  if (const char* wrong = check_code(p)) return wrong;
  Dim dims[kPointwiseDims] = {};
  const auto inside = [&](const Extent& extent, int64_t dtype, const int64_t* strides) {
    for (int64_t d = 0; d < kPointwiseDims; d++) dims[d] = d < p.ndim ? Dim{p.shape[d], strides[d]} : Dim{1, 0};
    return dtype_bytes(dtype) != 0 && fits(extent, dtype_bytes(dtype), dims);
  };
  for (int64_t i = 0; i < p.inputs; i++)
    if (!inside(extents[i], p.in_dtype[i], p.in_stride + i * kPointwiseDims)) return "an input is missing or too small";
  if (!inside(extents[kPointwiseY], p.out_dtype, p.out_stride)) return "y is missing or too small";
  return nullptr;
}

bool in_place(const void* problem, int operand) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  if (operand >= p.inputs || p.in_dtype[operand] != p.out_dtype) return false;
  for (int64_t d = 0; d < p.ndim; d++)
    if (p.shape[d] != 1 && p.in_stride[operand * kPointwiseDims + d] != p.out_stride[d]) return false;
  return true;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  double count = static_cast<double>(p.length);
  for (int64_t d = 0; d < p.ndim; d++) count *= static_cast<double>(p.shape[d]);
  return count;
}

constexpr KernelEntry kKernels[] = {ZOI_POINTWISE_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kPointwise = {
    "pointwise",
    kOperands,
    kPointwiseOperands,
    kPointwiseProblemFields,
    std::size(kPointwiseProblemFields),
    sizeof(PointwiseProblem),
    check,
    in_place,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
