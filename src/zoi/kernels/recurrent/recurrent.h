// recurrent: the sequential part of ONNX LSTM, GRU and RNN in one direction, float32.
// `x` holds X W^T + Wb, already computed by gemm: [seq, batch, gates*hidden], ONNX gate order (LSTM i o f c; GRU z r
// h).
//   LSTM: i,o,f = f(x + h R^T + Rb (+ P c)), c' = f c + i g(x + h R^T + Rb), h' = o h(c')
//         (f = 1 - i if input_forget)
//   GRU:  z,r = f(x + h R^T + Rb); n = g(x + r (h R^T + Rb)) if linear_before_reset, else g(x + (r h) R^T + Rb);
//         h' = (1 - z) n + z h
//   RNN:  h' = f(x + h R^T + Rb)
// A clip > 0 bounds the arguments of the gates' activations, f and g, to [-clip, clip].
// Steps at or past seq_lens[b] keep the state and give zeros in y. `reverse` walks each sequence from its own end.
#pragma once

#include "../activation.h"

namespace zoi {

enum RecurrentKind : int64_t { kLstm = 0, kGru = 1, kRnn = 2 };
// act_f, act_g, act_h: Activation values. clip: 0 for none. y_step, y_batch: elements between steps, batches of y.
// clang-format off
#define ZOI_RECURRENT_FIELDS(I, A, R, S) \
  I(kind) \
  I(seq) \
  I(batch) \
  I(hidden) \
  I(reverse) \
  I(linear_before_reset) \
  I(input_forget) I(act_f) I(act_g) I(act_h) S(act_p0, 3) S(act_p1, 3) R(clip) I(x_step) I(x_batch) I(y_step) I(y_batch)
// clang-format on
ZOI_PROBLEM(RecurrentProblem, ZOI_RECURRENT_FIELDS)

[[gnu::always_inline]] static inline int64_t recurrent_gates(const RecurrentProblem& p) {
  return p.kind == kLstm ? 4 : p.kind == kGru ? 3 : 1;
}

enum RecurrentOperand {
  kRecurrentX,
  kRecurrentR,
  kRecurrentRBias,
  kRecurrentPeephole,
  kRecurrentH0,
  kRecurrentC0,
  kRecurrentSeqLens,
  kRecurrentY,
  kRecurrentYH,
  kRecurrentYC,
  kRecurrentOperands
};
struct RecurrentArgs {
  const float* x;
  const float* r;           // plain: [gates*hidden, hidden]
  const float* r_bias;      // [gates*hidden] or null
  const float* peephole;    // [3*hidden] i o f, or null
  const float* h0;          // [batch, hidden] or null (zeros)
  const float* c0;          // [batch, hidden] or null (zeros)
  const int32_t* seq_lens;  // [batch] or null (all seq)
  float* y;                 // or null
  float* y_h;               // [batch, hidden] or null; may be the memory of h0
  float* y_c;               // [batch, hidden] or null; may be the memory of c0
  RecurrentProblem problem;
};

#define ZOI_RECURRENT_KERNELS(K) K(recurrent_f32_avx512) K(recurrent_f32_avx2) K(recurrent_f32_generic)
ZOI_RECURRENT_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
