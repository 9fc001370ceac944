// One batch after another, sums in double. Scratch: h, c, the sums of the gates, and r h.
#include <algorithm>
#include <cstring>

#include "../activation_generic.h"
#include "recurrent.h"

namespace zoi {
namespace {

struct Step {
  const RecurrentArgs& args;
  float *h, *c, *sums, *rh;

  double dot(int64_t row, const float* state) const {
    const int64_t n = args.problem.hidden;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += static_cast<double>(args.r[row * n + k]) * state[k];
    return sum;
  }
  double r_bias(int64_t row) const { return args.r_bias ? args.r_bias[row] : 0.0; }
  double peephole(int64_t which, int64_t j) const {
    return args.peephole ? static_cast<double>(args.peephole[which * args.problem.hidden + j]) * c[j] : 0.0;
  }
  double activation(int which, double v) const {
    const RecurrentProblem& p = args.problem;
    if (p.clip > 0 && which < 2) v = clamp_value(v, -p.clip, p.clip);
    const int64_t acts[] = {p.act_f, p.act_g, p.act_h};
    return activate_value(acts[which], v, p.act_p0[which], p.act_p1[which]);
  }

  void lstm(const float* x) {
    const int64_t n = args.problem.hidden;
    for (int64_t row = 0; row < 4 * n; row++) sums[row] = static_cast<float>(x[row] + dot(row, h) + r_bias(row));
    for (int64_t j = 0; j < n; j++) {
      const double i = activation(0, sums[j] + peephole(0, j));
      const double f = args.problem.input_forget ? 1.0 - i : activation(0, sums[2 * n + j] + peephole(2, j));
      c[j] = static_cast<float>(f * c[j] + i * activation(1, sums[3 * n + j]));
      h[j] = static_cast<float>(activation(0, sums[n + j] + peephole(1, j)) * activation(2, c[j]));
    }
  }
  void gru(const float* x) {
    const int64_t n = args.problem.hidden;
    for (int64_t row = 0; row < 2 * n; row++)
      sums[row] = static_cast<float>(activation(0, x[row] + dot(row, h) + r_bias(row)));
    for (int64_t j = 0; j < n; j++) rh[j] = sums[n + j] * h[j];
    for (int64_t j = 0; j < n; j++) {
      const int64_t row = 2 * n + j;
      const double inner =
          args.problem.linear_before_reset ? sums[n + j] * (dot(row, h) + r_bias(row)) : dot(row, rh) + r_bias(row);
      sums[row] = static_cast<float>(activation(1, x[row] + inner));
    }
    for (int64_t j = 0; j < n; j++)
      h[j] = static_cast<float>((1.0 - sums[j]) * sums[2 * n + j] + static_cast<double>(sums[j]) * h[j]);
  }
  void rnn(const float* x) {
    const int64_t n = args.problem.hidden;
    for (int64_t j = 0; j < n; j++) sums[j] = static_cast<float>(activation(0, x[j] + dot(j, h) + r_bias(j)));
    std::copy_n(sums, n, h);
  }
};

void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const RecurrentArgs*>(raw);
  const RecurrentProblem& p = args.problem;
  const int64_t n = p.hidden;
  float* h = reinterpret_cast<float*>(lane.scratch);
  Step step{args, h, h + n, h + 2 * n, h + 6 * n};
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  const auto read = [&](float* state, const float* from, int64_t b) {
    from ? std::memcpy(state, from + b * n, bytes) : std::memset(state, 0, bytes);
  };
  const Range range = lane_range(p.batch, lane);
  for (int64_t b = range.begin; b < range.end; b++) {
    read(step.h, args.h0, b);
    read(step.c, args.c0, b);
    const int64_t length = args.seq_lens ? std::clamp<int64_t>(args.seq_lens[b], 0, p.seq) : p.seq;
    for (int64_t i = 0; i < length; i++) {
      const int64_t t = p.reverse ? length - 1 - i : i;
      const float* x = args.x + t * p.x_step + b * p.x_batch;
      p.kind == kLstm ? step.lstm(x) : p.kind == kGru ? step.gru(x) : step.rnn(x);
      if (args.y) std::memcpy(args.y + t * p.y_step + b * p.y_batch, step.h, bytes);
    }
    if (args.y)
      for (int64_t t = length; t < p.seq; t++) std::memset(args.y + t * p.y_step + b * p.y_batch, 0, bytes);
    if (args.y_h) std::memcpy(args.y_h + b * n, step.h, bytes);
    if (args.y_c) std::memcpy(args.y_c + b * n, step.c, bytes);
  }
}

bool supports(const void*) { return true; }
int64_t slices(const void* problem) { return static_cast<const RecurrentProblem*>(problem)->batch; }
int64_t scratch(const void* problem) {
  return 7 * static_cast<const RecurrentProblem*>(problem)->hidden * static_cast<int64_t>(sizeof(float));
}
double cost(const void* problem) {
  const auto& p = *static_cast<const RecurrentProblem*>(problem);
  return 4.0 * static_cast<double>(p.seq * p.batch) * static_cast<double>(recurrent_gates(p) * p.hidden * p.hidden);
}

}  // namespace

extern const Kernel recurrent_f32_generic = {
    .name = "recurrent_f32_generic",
    .arch = Arch::generic,
    .run = run,
    .supports = supports,
    .slices = slices,
    .scratch = scratch,
    .packed_bytes = nullptr,
    .pack = nullptr,
    .cost = cost,
    .exact = true,
};

}  // namespace zoi
