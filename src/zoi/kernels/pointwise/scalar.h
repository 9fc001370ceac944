// One pointwise operation on one value of T (float, double, int64_t): the meaning that the vector kernels are tested
// against. Floats compute their transcendental functions in double. Included only by units built without ISA flags.
#pragma once

#include "../activation_generic.h"
#include "../dtype.h"
#include "arity.h"

namespace zoi {

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (uint64_t rest = static_cast<uint64_t>(exponent); rest; rest >>= 1, factor *= factor)
    if (rest & 1) result *= factor;
  return static_cast<T>(result);
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    return b == -1 ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a / b;
  } else {
    return a / b;
  }
}

template <class T>
T remainder_value(T a, T b, bool sign_of_divisor) {
  T r;
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || b == -1) return 0;
    r = a % b;
  } else {
    r = std::fmod(a, b);
  }
  return sign_of_divisor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// The activation of activation.h with the same meaning, or kActNone.
inline int64_t activation_of(int64_t op) {
  switch (op) {
    case kPwSigmoid:
      return kActSigmoid;
    case kPwTanh:
      return kActTanh;
    case kPwGelu:
      return kActGelu;
    case kPwGeluTanh:
      return kActGeluTanh;
    case kPwSilu:
      return kActSilu;
    case kPwHardSigmoid:
      return kActHardSigmoid;
    case kPwHardSwish:
      return kActHardSwish;
    case kPwLeakyRelu:
      return kActLeakyRelu;
    case kPwElu:
      return kActElu;
    case kPwSoftplus:
      return kActSoftplus;
    case kPwMish:
      return kActMish;
    default:
      return kActNone;
  }
}

inline double real_function(int64_t op, double x) {
  switch (op) {
    case kPwSqrt:
      return std::sqrt(x);
    case kPwRsqrt:
      return 1.0 / std::sqrt(x);
    case kPwReciprocal:
      return 1.0 / x;
    case kPwExp:
      return std::exp(x);
    case kPwLog:
      return std::log(x);
    case kPwErf:
      return std::erf(x);
    case kPwFloor:
      return std::floor(x);
    case kPwCeil:
      return std::ceil(x);
    case kPwRound:
      return std::nearbyint(x);
    case kPwSin:
      return std::sin(x);
    case kPwCos:
      return std::cos(x);
    case kPwTan:
      return std::tan(x);
    case kPwAsin:
      return std::asin(x);
    case kPwAcos:
      return std::acos(x);
    case kPwAtan:
      return std::atan(x);
    case kPwSinh:
      return std::sinh(x);
    case kPwCosh:
      return std::cosh(x);
    case kPwAsinh:
      return std::asinh(x);
    case kPwAcosh:
      return std::acosh(x);
    case kPwAtanh:
      return std::atanh(x);
    default:
      return x / (1.0 + std::fabs(x));  // kPwSoftsign
  }
}

template <class T>
T evaluate(int64_t op, T a, T b, T c) {
  using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // signed overflow would be undefined
  const auto x = static_cast<Wrapping>(a), y = static_cast<Wrapping>(b);
  switch (op) {
    case kPwCopy:
      return a;
    case kPwAdd:
      return static_cast<T>(x + y);
    case kPwSub:
      return static_cast<T>(x - y);
    case kPwMul:
      return static_cast<T>(x * y);
    case kPwDiv:
      return divide(a, b);
    case kPwMax:
      return a != a || a > b ? a : b;
    case kPwMin:
      return a != a || a < b ? a : b;
    case kPwPow:
      if constexpr (std::is_integral_v<T>)
        return integer_power(a, b);
      else
        return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    case kPwMod:
      return remainder_value(a, b, true);
    case kPwFmod:
      return remainder_value(a, b, false);
    case kPwNeg:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - x);
      return -a;
    case kPwAbs:
      if constexpr (std::is_integral_v<T>) return a < 0 ? static_cast<T>(0 - x) : a;
      return static_cast<T>(std::fabs(a));
    case kPwSign:
      return a > 0 ? T(1) : a < 0 ? T(-1) : a;
    case kPwEqual:
      return T(a == b);
    case kPwLess:
      return T(a < b);
    case kPwLessEqual:
      return T(a <= b);
    case kPwGreater:
      return T(a > b);
    case kPwGreaterEqual:
      return T(a >= b);
    case kPwAnd:
      return T(a != 0 && b != 0);
    case kPwOr:
      return T(a != 0 || b != 0);
    case kPwXor:
      return T((a != 0) != (b != 0));
    case kPwNot:
      return T(a == 0);
    case kPwIsNan:
      return T(a != a);
    case kPwIsInf:
      return T(std::isinf(static_cast<double>(a)));
    case kPwWhere:
      return a != 0 ? b : c;
    case kPwRelu:
      return a < 0 ? T(0) : a;
    case kPwClip: {
      T above = a < b ? b : a;
      return above > c ? c : above;
    }
    default:
      break;
  }
  const auto value = static_cast<double>(a);
  const int64_t act = activation_of(op);
  return convert<T>(act == kActNone ? real_function(op, value)
                                    : activate_value(act, value, static_cast<double>(b), static_cast<double>(c)));
}

}  // namespace zoi
