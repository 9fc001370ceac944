// How many operands each pointwise operation reads.
#pragma once

#include "pointwise.h"

namespace zoi {

[[gnu::always_inline]] static inline int64_t pointwise_arity(int64_t op) {
  switch (op) {
    case kPwWhere:
    case kPwClip:
    case kPwHardSigmoid:
    case kPwHardSwish:
      return 3;
    case kPwAdd:
    case kPwSub:
    case kPwMul:
    case kPwDiv:
    case kPwMax:
    case kPwMin:
    case kPwPow:
    case kPwMod:
    case kPwFmod:
    case kPwEqual:
    case kPwLess:
    case kPwLessEqual:
    case kPwGreater:
    case kPwGreaterEqual:
    case kPwAnd:
    case kPwOr:
    case kPwXor:
    case kPwLeakyRelu:
    case kPwElu:
      return 2;
    default:
      return 1;
  }
}

}  // namespace zoi
