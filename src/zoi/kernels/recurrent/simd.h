// LSTM, GRU and RNN steps in float32 vectors of hidden units. For a block of kWidth units the sums of all gates stay in
// registers while h streams by, and the gates follow at once, so nothing of a step but its state reaches memory.
//
// Packed r: [hidden / kWidth][k][gates][kWidth], filled up with zeros; one contiguous stream through all blocks. A GRU
// that resets h before the product needs z and r of all units first: [..][k][2][..] of those, then [..][k][1][..] of n.
//
// Up to kBatch batches share each load of r; a slice is such a group, so results do not depend on the lanes. Blocks are
// walked forwards and backwards in turn: those of the last step's end are still in L1.
// Scratch: for each batch of the group h (twice, swapped after each step), c, z and r h, with whole blocks.
#pragma once

#include "recurrent.h"

namespace zoi::ZOI_ISA {

inline constexpr int kBatch = 4;

ZOI_INLINE int64_t hidden_blocks(const RecurrentProblem& p) { return (p.hidden + kWidth - 1) / kWidth; }

/// Whether the activations are the usual ones and nothing optional is asked of the gates.
ZOI_INLINE bool is_usual(const RecurrentArgs& args) {
  const RecurrentProblem& p = args.problem;
  if (p.clip > 0 || p.input_forget || args.peephole) return false;
  if (p.kind == kLstm) return p.act_f == kActSigmoid && p.act_g == kActTanh && p.act_h == kActTanh;
  if (p.kind == kGru) return p.act_f == kActSigmoid && p.act_g == kActTanh;
  return p.act_f == kActTanh;
}

[[gnu::noinline, maybe_unused]] static V activate_any(int64_t act, V v, V p0, V p1) {
  V result = v;
  with_activation(act,
                  [&](auto tag) __attribute__((always_inline)) { result = activate<decltype(tag)::value>(v, p0, p1); });
  return result;
}

/// The activation number `which` (f, g, h) of the problem.
template <bool usual>
ZOI_INLINE V activation(const RecurrentProblem& p, int which, V v) {
  if constexpr (usual) return which == 0 && p.kind != kRnn ? sigmoid(v) : zoi::ZOI_ISA::tanh(v);
  const int64_t acts[] = {p.act_f, p.act_g, p.act_h};
  if (p.clip > 0 && which < 2) {
    const float clip = static_cast<float>(p.clip);
    v = min_second(set1(clip), max_second(set1(-clip), v));
  }
  return activate_any(acts[which], v, set1(static_cast<float>(p.act_p0[which])),
                      set1(static_cast<float>(p.act_p1[which])));
}

// sum[b][g] += sum over k of h[b][k] r[k][g], with `chains` sums side by side for the latency of an addition.
template <int gates, int batch>
ZOI_INLINE void add_products(V (&sum)[batch][gates], const float* const (&h)[batch], const float* r, int64_t n) {
  constexpr int kChains = batch > 1 ? 1 : gates >= 4 ? 2 : gates == 3 ? 3 : gates == 2 ? 4 : 8;
  V part[kChains][batch][gates];
#pragma GCC unroll 8
  for (int u = 0; u < kChains; u++)
#pragma GCC unroll 4
    for (int b = 0; b < batch; b++)
#pragma GCC unroll 4
      for (int g = 0; g < gates; g++) part[u][b][g] = u ? zero() : sum[b][g];
  const auto step = [&](int64_t k, int u) __attribute__((always_inline)) {
    V w[gates];
#pragma GCC unroll 4
    for (int g = 0; g < gates; g++) w[g] = load(r + g * kWidth);
#pragma GCC unroll 4
    for (int b = 0; b < batch; b++) {
      const V v = broadcast(h[b] + k);
#pragma GCC unroll 4
      for (int g = 0; g < gates; g++) part[u][b][g] = fma(v, w[g], part[u][b][g]);
    }
    r += gates * kWidth;
  };
  int64_t k = 0;
  for (; k + kChains <= n; k += kChains)
#pragma GCC unroll 8
    for (int u = 0; u < kChains; u++) step(k + u, u);
  for (; k < n; k++) step(k, 0);
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++)
#pragma GCC unroll 4
    for (int g = 0; g < gates; g++) {
      V total = part[0][b][g];
#pragma GCC unroll 8
      for (int u = 1; u < kChains; u++) total = add(total, part[u][b][g]);
      sum[b][g] = total;
    }
}

/// One step of a group of batches.
template <int batch>
struct RecurrentStep {
  const float* x[batch];
  float* y[batch];  // or null
  const float* h[batch];
  float *next[batch], *c[batch], *z[batch], *rh[batch];
  bool live[batch];  // false past the end of a sequence: the state stays
  bool backwards;
};

ZOI_INLINE V load_or_zero(const float* p, int64_t i, M m) { return p ? load(p + i, m) : zero(); }

template <int batch>
ZOI_INLINE void finish(const RecurrentStep<batch>& s, int b, int64_t j, V h, M m) {
  store(s.next[b] + j, s.live[b] ? h : load(s.h[b] + j));
  if (s.live[b] && s.y[b]) store(s.y[b] + j, h, m);
}

template <bool usual, int batch>
ZOI_INLINE void lstm_block(const RecurrentArgs& args, const RecurrentStep<batch>& s, int64_t j, M m) {
  const RecurrentProblem& p = args.problem;
  const int64_t n = p.hidden;
  V sum[batch][4];
#pragma GCC unroll 4
  for (int g = 0; g < 4; g++) {
    const V bias = load_or_zero(args.r_bias, g * n + j, m);
#pragma GCC unroll 4
    for (int b = 0; b < batch; b++) sum[b][g] = add(load(s.x[b] + g * n + j, m), bias);
  }
  add_products<4, batch>(sum, s.h, args.r + j * n * 4, n);
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) {
    const V c = load(s.c[b] + j);
    const auto peephole = [&](int which, V cell) __attribute__((always_inline)) {
      return usual ? zero() : mul(load_or_zero(args.peephole, which * n + j, m), cell);
    };
    const V i = activation<usual>(p, 0, add(sum[b][0], peephole(0, c)));
    V f = set1(1.0f);
    if (!usual && p.input_forget)
      f = sub(f, i);
    else
      f = activation<usual>(p, 0, add(sum[b][2], peephole(2, c)));
    const V next = fma(f, c, mul(i, activation<usual>(p, 1, sum[b][3])));
    const V o = activation<usual>(p, 0, add(sum[b][1], peephole(1, next)));
    if (s.live[b]) store(s.c[b] + j, next);
    finish(s, b, j, mul(o, activation<usual>(p, 2, next)), m);
  }
}

// (1 - z) n + z h
ZOI_INLINE V blend(V z, V n, V h) { return fma(z, sub(h, n), n); }

template <bool usual, int batch>
ZOI_INLINE void gru_block(const RecurrentArgs& args, const RecurrentStep<batch>& s, int64_t j, M m) {
  const RecurrentProblem& p = args.problem;
  const int64_t n = p.hidden;
  V sum[batch][3];
#pragma GCC unroll 3
  for (int g = 0; g < 3; g++) {
    const V bias = load_or_zero(args.r_bias, g * n + j, m);
#pragma GCC unroll 4
    for (int b = 0; b < batch; b++) sum[b][g] = g == 2 ? bias : add(load(s.x[b] + g * n + j, m), bias);
  }
  add_products<3, batch>(sum, s.h, args.r + j * n * 3, n);
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) {
    const V z = activation<usual>(p, 0, sum[b][0]), r = activation<usual>(p, 0, sum[b][1]);
    const V candidate = activation<usual>(p, 1, fma(r, sum[b][2], load(s.x[b] + 2 * n + j, m)));
    finish(s, b, j, blend(z, candidate, load(s.h[b] + j)), m);
  }
}

template <bool usual, int batch>
ZOI_INLINE void gru_gates(const RecurrentArgs& args, const RecurrentStep<batch>& s, int64_t j, M m) {
  const RecurrentProblem& p = args.problem;
  const int64_t n = p.hidden;
  V sum[batch][2];
#pragma GCC unroll 2
  for (int g = 0; g < 2; g++) {
    const V bias = load_or_zero(args.r_bias, g * n + j, m);
#pragma GCC unroll 4
    for (int b = 0; b < batch; b++) sum[b][g] = add(load(s.x[b] + g * n + j, m), bias);
  }
  add_products<2, batch>(sum, s.h, args.r + j * n * 2, n);
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) {
    store(s.z[b] + j, activation<usual>(p, 0, sum[b][0]));
    store(s.rh[b] + j, mul(activation<usual>(p, 0, sum[b][1]), load(s.h[b] + j)));
  }
}
template <bool usual, int batch>
ZOI_INLINE void gru_candidate(const RecurrentArgs& args, const RecurrentStep<batch>& s, int64_t j, M m) {
  const RecurrentProblem& p = args.problem;
  const int64_t n = p.hidden;
  const V bias = load_or_zero(args.r_bias, 2 * n + j, m);
  const float* rh[batch];
  V sum[batch][1];
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) {
    rh[b] = s.rh[b];
    sum[b][0] = add(load(s.x[b] + 2 * n + j, m), bias);
  }
  add_products<1, batch>(sum, rh, args.r + (2 * hidden_blocks(p) * kWidth + j) * n, n);
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) {
    const V candidate = activation<usual>(p, 1, sum[b][0]);
    finish(s, b, j, blend(load(s.z[b] + j), candidate, load(s.h[b] + j)), m);
  }
}

template <bool usual, int batch>
ZOI_INLINE void rnn_block(const RecurrentArgs& args, const RecurrentStep<batch>& s, int64_t j, M m) {
  const RecurrentProblem& p = args.problem;
  const V bias = load_or_zero(args.r_bias, j, m);
  V sum[batch][1];
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) sum[b][0] = add(load(s.x[b] + j, m), bias);
  add_products<1, batch>(sum, s.h, args.r + j * p.hidden, p.hidden);
#pragma GCC unroll 4
  for (int b = 0; b < batch; b++) finish(s, b, j, activation<usual>(p, 0, sum[b][0]), m);
}

template <class Body>
ZOI_INLINE void for_blocks(const RecurrentProblem& p, bool backwards, Body body) {
  const int64_t blocks = hidden_blocks(p);
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t j = (backwards ? blocks - 1 - i : i) * kWidth, left = p.hidden - j;
    body(j, first(static_cast<int>(left < kWidth ? left : kWidth)));
  }
}

template <int kind, bool usual, int batch>
ZOI_INLINE void one_step(const RecurrentArgs& args, const RecurrentStep<batch>& s) {
  const RecurrentProblem& p = args.problem;
  if constexpr (kind == kLstm) {
    for_blocks(p, s.backwards,
               [&](int64_t j, M m) __attribute__((always_inline)) { lstm_block<usual>(args, s, j, m); });
  } else if constexpr (kind == kRnn) {
    for_blocks(p, s.backwards, [&](int64_t j, M m) __attribute__((always_inline)) { rnn_block<usual>(args, s, j, m); });
  } else if (p.linear_before_reset) {
    for_blocks(p, s.backwards, [&](int64_t j, M m) __attribute__((always_inline)) { gru_block<usual>(args, s, j, m); });
  } else {
    for_blocks(p, false, [&](int64_t j, M m) __attribute__((always_inline)) { gru_gates<usual>(args, s, j, m); });
    for_blocks(p, true, [&](int64_t j, M m) __attribute__((always_inline)) { gru_candidate<usual>(args, s, j, m); });
  }
}

/// A vector at a time over the `n` elements of a state, whose copy in scratch has whole vectors.
ZOI_INLINE void read_state(float* state, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const M m = first(static_cast<int>(n - i < kWidth ? n - i : kWidth));
    store(state + i, load_or_zero(from, i, m));
  }
}
ZOI_INLINE void write_state(float* to, const float* state, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(to + i, load(state + i));
  if (i < n) store(to + i, load(state + i), first(static_cast<int>(n - i)));
}

template <int kind, bool usual, int batch>
static void run_group(const RecurrentArgs& args, int64_t first_batch, float* scratch) {
  const RecurrentProblem& p = args.problem;
  const int64_t n = p.hidden, whole = hidden_blocks(p) * kWidth;
  RecurrentStep<batch> s;
  int64_t length[batch], longest = 0;
  for (int b = 0; b < batch; b++) {
    const int64_t at = first_batch + b;
    float* own = scratch + b * 5 * whole;
    s.h[b] = own;
    s.next[b] = own + whole;
    s.c[b] = own + 2 * whole;
    s.z[b] = own + 3 * whole;
    s.rh[b] = own + 4 * whole;
    read_state(own, args.h0 ? args.h0 + at * n : nullptr, n);
    if (kind == kLstm) read_state(s.c[b], args.c0 ? args.c0 + at * n : nullptr, n);
    length[b] = p.seq;
    if (args.seq_lens) {
      const int64_t wanted = args.seq_lens[at];
      length[b] = wanted < 0 ? 0 : wanted > p.seq ? p.seq : wanted;
    }
    longest = length[b] > longest ? length[b] : longest;
  }
  for (int64_t step = 0; step < longest; step++) {
    for (int b = 0; b < batch; b++) {
      const int64_t at = first_batch + b;
      s.live[b] = batch == 1 || step < length[b];
      const int64_t t = !s.live[b] ? 0 : p.reverse ? length[b] - 1 - step : step;
      s.x[b] = args.x + t * p.x_step + at * p.x_batch;
      s.y[b] = args.y ? args.y + t * p.y_step + at * p.y_batch : nullptr;
    }
    s.backwards = step & 1;
    one_step<kind, usual, batch>(args, s);
    for (int b = 0; b < batch; b++) {
      float* old = const_cast<float*>(s.h[b]);
      s.h[b] = s.next[b];
      s.next[b] = old;
    }
  }
  for (int b = 0; b < batch; b++) {
    const int64_t at = first_batch + b;
    if (args.y)
      for (int64_t t = length[b]; t < p.seq; t++)
        __builtin_memset(args.y + t * p.y_step + at * p.y_batch, 0, static_cast<size_t>(n) * 4);
    if (args.y_h) write_state(args.y_h + at * n, s.h[b], n);
    if (args.y_c) write_state(args.y_c + at * n, s.c[b], n);
  }
}

template <int kind, bool usual>
ZOI_INLINE void run_kind(const RecurrentArgs& args, Range groups, float* scratch) {
  constexpr int kAtOnce = kind == kLstm && kRegisters < 32 ? 2 : kBatch;  // their sums stay in registers
  const int64_t batches = args.problem.batch;
  for (int64_t group = groups.begin; group < groups.end; group++) {
    int64_t b = group * kBatch;
    const int64_t end = b + kBatch < batches ? b + kBatch : batches;
    if (kAtOnce == kBatch && end - b == kBatch) {
      run_group<kind, usual, kBatch>(args, b, scratch);
      continue;
    }
    for (; b + 2 <= end; b += 2) run_group<kind, usual, 2>(args, b, scratch);
    if (b < end) run_group<kind, usual, 1>(args, b, scratch);
  }
}

ZOI_INLINE int64_t batch_groups(const RecurrentProblem& p) { return (p.batch + kBatch - 1) / kBatch; }

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const RecurrentArgs*>(raw);
  const Range groups = lane_range(batch_groups(args.problem), lane);
  float* scratch = reinterpret_cast<float*>(lane.scratch);
  const bool usual = is_usual(args);
  if (args.problem.kind == kLstm)
    usual ? run_kind<kLstm, true>(args, groups, scratch) : run_kind<kLstm, false>(args, groups, scratch);
  else if (args.problem.kind == kGru)
    usual ? run_kind<kGru, true>(args, groups, scratch) : run_kind<kGru, false>(args, groups, scratch);
  else
    usual ? run_kind<kRnn, true>(args, groups, scratch) : run_kind<kRnn, false>(args, groups, scratch);
}

static bool supports(const void*) { return true; }
static int64_t slices(const void* problem) { return batch_groups(*static_cast<const RecurrentProblem*>(problem)); }
static int64_t scratch(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  return 5 * (p.batch < kBatch ? p.batch : kBatch) * hidden_blocks(p) * kWidth * 4;
}
static int64_t packed_bytes(const void* problem, int operand) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  return operand == kRecurrentR ? recurrent_gates(p) * hidden_blocks(p) * kWidth * p.hidden * 4 : 0;
}
// Gates [begin, begin + count) of r.
static float* pack_gates(const RecurrentProblem& p, const float* r, int64_t begin, int64_t count, float* to) {
  const int64_t n = p.hidden, whole = hidden_blocks(p) * kWidth;
  for (int64_t j = 0; j < whole; j++)
    for (int64_t k = 0; k < n; k++)
      for (int64_t g = 0; g < count; g++)
        to[((j / kWidth * n + k) * count + g) * kWidth + j % kWidth] = j < n ? r[((begin + g) * n + j) * n + k] : 0.0f;
  return to + whole * n * count;
}
static void pack(const void* problem, int, const void* plain, void* packed) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  const float* r = static_cast<const float*>(plain);
  float* to = static_cast<float*>(packed);
  if (p.kind == kGru && !p.linear_before_reset)
    pack_gates(p, r, 2, 1, pack_gates(p, r, 0, 2, to));
  else
    pack_gates(p, r, 0, recurrent_gates(p), to);
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  const double block = static_cast<double>(recurrent_gates(p)) * (static_cast<double>(p.hidden) * 2.0 + 40.0);
  return 50.0 + static_cast<double>(p.seq * p.batch) * static_cast<double>(hidden_blocks(p)) * block;
}
static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, scratch, packed_bytes, pack, cost, false};
}

}  // namespace zoi::ZOI_ISA
