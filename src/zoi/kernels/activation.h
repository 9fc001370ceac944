// Activations that a kernel may apply to its result before storing it. One list for every family's epilogue.
#pragma once

#include "kernel.h"

namespace zoi {

/// Values are written into .zoi files: append only. `p0` and `p1` are the problem's act_p0 and act_p1.
enum Activation : int64_t {
  kActNone = 0,
  kActRelu,     // max(x, 0), NaN kept
  kActClip,     // min(max(x, p0), p1), NaN kept
  kActSigmoid,  // 1 / (1 + exp(-x))
  kActTanh,
  kActGelu,         // 0.5 x (1 + erf(x / sqrt(2)))
  kActGeluTanh,     // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kActSilu,         // x sigmoid(x)
  kActHardSigmoid,  // min(max(p0 x + p1, 0), 1)
  kActHardSwish,    // x min(max(p0 x + p1, 0), 1); ONNX HardSwish has p0 = 1/6, p1 = 1/2
  kActLeakyRelu,    // x < 0 ? p0 x : x
  kActElu,          // x < 0 ? p0 (exp(x) - 1) : x
  kActSoftplus,     // log(1 + exp(x))
  kActMish,         // x tanh(softplus(x))
  kActCount
};

}  // namespace zoi
