// pointwise: a chain of element-by-element operations over up to 6 dimensions, any broadcasting by strides of 0.
// Values are numbered: 0..7 are the inputs, 8..15 the immediates imm[], 16+i the result of instruction i. The last
// instruction's result is stored. Everything is computed in the type `compute` (kF32, kF64, kI64): inputs are
// converted when loaded (bool is 0 or 1), the result when stored (to kBool: != 0; float to integer truncates).
#pragma once

#include "../kernel.h"

namespace zoi {

inline constexpr int64_t kPointwiseDims = 6, kPointwiseInputs = 8, kPointwiseImms = 8, kPointwiseCode = 24;
inline constexpr int64_t kPointwiseImmBase = 8, kPointwiseResultBase = 16;

/// Values are written into .zoi files: append only. a, b, c are the instruction's operands.
enum PointwiseOp : int64_t {
  kPwCopy = 0,
  kPwAdd,
  kPwSub,
  kPwMul,
  kPwDiv,  // integer division truncates toward zero; by zero gives 0
  kPwMax,
  kPwMin,  // NaN if either is NaN
  kPwPow,
  kPwMod,
  kPwFmod,  // Mod: sign of the divisor; Fmod: sign of the dividend
  kPwNeg,
  kPwAbs,
  kPwSign,
  kPwSqrt,
  kPwRsqrt,
  kPwReciprocal,
  kPwExp,
  kPwLog,
  kPwErf,
  kPwFloor,
  kPwCeil,
  kPwRound,  // Round: half to even
  kPwSin,
  kPwCos,
  kPwTan,
  kPwAsin,
  kPwAcos,
  kPwAtan,
  kPwSinh,
  kPwCosh,
  kPwAsinh,
  kPwAcosh,
  kPwAtanh,
  kPwEqual,
  kPwLess,
  kPwLessEqual,
  kPwGreater,
  kPwGreaterEqual,  // 1 or 0
  kPwAnd,
  kPwOr,
  kPwXor,
  kPwNot,
  kPwIsNan,
  kPwIsInf,  // IsInf: 1 if infinite
  kPwWhere,  // a != 0 ? b : c
  kPwRelu,
  kPwClip,  // Clip: min(max(a, b), c), NaN of a kept
  kPwSigmoid,
  kPwTanh,
  kPwGelu,
  kPwGeluTanh,
  kPwSilu,
  kPwHardSigmoid,
  kPwHardSwish,  // slope b, offset c, as in activation.h
  kPwLeakyRelu,
  kPwElu,  // slope or alpha b
  kPwSoftplus,
  kPwMish,
  kPwSoftsign,
  kPwCount
};

// clang-format off
#define ZOI_POINTWISE_FIELDS(I, A, R, S) \
  I(ndim) \
  A(shape, 6) \
  I(inputs) A(in_dtype, 8) A(in_stride, 48) I(out_dtype) A(out_stride, 6) I(compute) I(length) A(code, 96) S(imm, 8)
// clang-format on
// in_stride[i*6 + d], code[i*4 + {0: op, 1: a, 2: b, 3: c}]; strides are in elements.
ZOI_PROBLEM(PointwiseProblem, ZOI_POINTWISE_FIELDS)

enum PointwiseOperand { kPointwiseX0 = 0, kPointwiseY = 8, kPointwiseOperands = 9 };
struct PointwiseArgs {
  const void* x[kPointwiseInputs];
  void* y;
  PointwiseProblem problem;
};

#define ZOI_POINTWISE_KERNELS(K) K(pointwise_avx512) K(pointwise_avx2) K(pointwise_generic)
ZOI_POINTWISE_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
