// The activations of activation.h for one value, computed in double: what every `generic` kernel calls, and the
// reference of simd/math.h. Included only by translation units built without ISA flags.
#pragma once

#include <cmath>

#include "activation.h"

namespace zoi {

/// Keeps NaN, as min_second(high, max_second(low, x)) does.
inline double clamp_value(double x, double low, double high) {
  double above = x < low ? low : x;
  return above > high ? high : above;
}
inline double sigmoid_value(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double softplus_value(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

inline double activate_value(int64_t act, double x, double p0, double p1) {
  switch (act) {
    case kActRelu:
      return x < 0 ? 0.0 : x;
    case kActClip:
      return clamp_value(x, p0, p1);
    case kActSigmoid:
      return sigmoid_value(x);
    case kActTanh:
      return std::tanh(x);
    case kActGelu:
      return 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752));
    case kActGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case kActSilu:
      return x * sigmoid_value(x);
    case kActHardSigmoid:
      return clamp_value(p0 * x + p1, 0.0, 1.0);
    case kActHardSwish:
      return x * clamp_value(p0 * x + p1, 0.0, 1.0);
    case kActLeakyRelu:
      return x < 0 ? p0 * x : x;
    case kActElu:
      return x < 0 ? p0 * std::expm1(x) : x;
    case kActSoftplus:
      return softplus_value(x);
    case kActMish:
      return x * std::tanh(softplus_value(x));
    default:
      return x;
  }
}
inline float activate(int64_t act, float x, float p0, float p1) {
  return static_cast<float>(activate_value(act, x, p0, p1));
}

}  // namespace zoi
