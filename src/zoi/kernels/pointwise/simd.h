// Pointwise chains in float32 vectors. A tile of up to kBlock elements goes through the whole chain before the next:
// each instruction is one tight loop over the tile, its results stay in the lane's scratch (L1), and the last writes
// to y. Inputs that are contiguous within a tile are read where they are; others are first packed into scratch.
//
// A tile is a piece of one innermost row, or, where rows are short, several whole rows.
#pragma once

#include "arity.h"

namespace zoi::ZOI_ISA {

inline constexpr int64_t kBlock = 512;       // elements of a tile that uses scratch
inline constexpr int64_t kLongBlock = 8192;  // of one that does not
inline constexpr int64_t kShortRow = 64;     // shorter rows are packed together
inline constexpr int64_t kValues = kPointwiseResultBase + kPointwiseCode;

/// Element i of the tile is p[i & mask]: mask is -1, or 0 for a vector of one repeated value.
struct Source {
  const float* p;
  int64_t mask;
};

template <class F>
ZOI_INLINE void map1(float* y, Source a, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a.p + (i & a.mask))));
  if (i < n) {
    M m = first(static_cast<int>(n - i));
    store(y + i, f(load(a.p + (i & a.mask), m)), m);
  }
}
template <class F>
ZOI_INLINE void map2(float* y, Source a, Source b, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a.p + (i & a.mask)), load(b.p + (i & b.mask))));
  if (i < n) {
    M m = first(static_cast<int>(n - i));
    store(y + i, f(load(a.p + (i & a.mask), m), load(b.p + (i & b.mask), m)), m);
  }
}
template <class F>
ZOI_INLINE void map3(float* y, Source a, Source b, Source c, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    store(y + i, f(load(a.p + (i & a.mask)), load(b.p + (i & b.mask)), load(c.p + (i & c.mask))));
  if (i < n) {
    M m = first(static_cast<int>(n - i));
    store(y + i, f(load(a.p + (i & a.mask), m), load(b.p + (i & b.mask), m), load(c.p + (i & c.mask), m)), m);
  }
}
// Functions too rare to be worth vectors: the C library's, one element at a time.
template <class F>
ZOI_INLINE void each1(float* y, Source a, int64_t n, F f) {
  for (int64_t i = 0; i < n; i++) y[i] = f(a.p[i & a.mask]);
}
template <class F>
ZOI_INLINE void each2(float* y, Source a, Source b, int64_t n, F f) {
  for (int64_t i = 0; i < n; i++) y[i] = f(a.p[i & a.mask], b.p[i & b.mask]);
}

ZOI_INLINE V truth(M m) { return select(m, set1(1.0f), zero()); }
ZOI_INLINE V untruth(M m) { return select(m, zero(), set1(1.0f)); }
ZOI_INLINE V is_true(V a) { return untruth(equal(a, zero())); }
ZOI_INLINE V sign_of(V a) {
  V one = bit_or(bit_and(a, set1(-0.0f)), set1(1.0f));
  return select(either(less(a, zero()), less(zero(), a)), one, a);
}
ZOI_INLINE float remainder_of(float a, float b) {
  float r = __builtin_fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define ZOI_MAP1(expression) return map1(y, a, n, [](V u) __attribute__((always_inline)) { return expression; })
#define ZOI_MAP2(expression) return map2(y, a, b, n, [](V u, V v) __attribute__((always_inline)) { return expression; })
#define ZOI_MAP3(expression) \
  return map3(y, a, b, c, n, [](V u, V v, V w) __attribute__((always_inline)) { return expression; })
#define ZOI_EACH1(function) return each1(y, a, n, [](float u) __attribute__((always_inline)) { return function(u); })
#define ZOI_EACH2(function) \
  return each2(y, a, b, n, [](float u, float v) __attribute__((always_inline)) { return function(u, v); })

// Exponents that need no power function.
static bool power(float* y, Source a, Source b, int64_t n) {
  if (b.mask) return false;
  const float exponent = *b.p;
  if (exponent == 2.0f) return map1(y, a, n, [](V u) __attribute__((always_inline)) { return mul(u, u); }), true;
  if (exponent == 3.0f)
    return map1(y, a, n, [](V u) __attribute__((always_inline)) { return mul(mul(u, u), u); }), true;
  if (exponent == -1.0f)
    return map1(y, a, n, [](V u) __attribute__((always_inline)) { return div(set1(1.0f), u); }), true;
  if (exponent == 0.5f) {
    map1(y, a, n, [](V u) __attribute__((always_inline)) {
      V infinity = set1(__builtin_inff());  // of which only the power function gives a root with either sign
      return select(equal(abs(u), infinity), infinity, sqrt(add(u, zero())));
    });
    return true;
  }
  return false;
}

/// The values of a tile: inputs, immediates, results. Not an array of Source, whose halves are written one by one and
/// would be read back as one, which the processor cannot forward.
struct Values {
  const float* p[kValues];
  int64_t mask[kValues];

  [[gnu::always_inline]] void set(int64_t i, const float* address, int64_t m) {
    p[i] = address;
    mask[i] = m;
  }
};

// Runs one instruction over n elements.
[[gnu::noinline]] static void execute(const int64_t* code, const Values& values, float* y, int64_t n) {
  const int64_t op = code[0], arity = pointwise_arity(op);
  const int64_t second = arity > 1 ? code[2] : code[1], third = arity > 2 ? code[3] : code[1];
  const Source a = {values.p[code[1]], values.mask[code[1]]};
  const Source b = {values.p[second], values.mask[second]};
  const Source c = {values.p[third], values.mask[third]};
  switch (op) {
    case kPwCopy:
      ZOI_MAP1(u);
    case kPwAdd:
      ZOI_MAP2(add(u, v));
    case kPwSub:
      ZOI_MAP2(sub(u, v));
    case kPwMul:
      ZOI_MAP2(mul(u, v));
    case kPwDiv:
      ZOI_MAP2(div(u, v));
    case kPwMax:
      ZOI_MAP2(select(unordered(u, u), u, max_second(u, v)));
    case kPwMin:
      ZOI_MAP2(select(unordered(u, u), u, min_second(u, v)));
    case kPwPow:
      if (power(y, a, b, n)) return;
      ZOI_EACH2(__builtin_powf);
    case kPwMod:
      ZOI_EACH2(remainder_of);
    case kPwFmod:
      ZOI_EACH2(__builtin_fmodf);
    case kPwNeg:
      ZOI_MAP1(bit_xor(u, set1(-0.0f)));
    case kPwAbs:
      ZOI_MAP1(abs(u));
    case kPwSign:
      ZOI_MAP1(sign_of(u));
    case kPwSqrt:
      ZOI_MAP1(sqrt(u));
    case kPwRsqrt:
      ZOI_MAP1(div(set1(1.0f), sqrt(u)));
    case kPwReciprocal:
      ZOI_MAP1(div(set1(1.0f), u));
    case kPwExp:
      ZOI_MAP1(exp(u));
    case kPwLog:
      ZOI_MAP1(log(u));
    case kPwErf:
      ZOI_MAP1(erf(u));
    case kPwFloor:
      ZOI_MAP1(floor(u));
    case kPwCeil:
      ZOI_MAP1(ceil(u));
    case kPwRound:
      ZOI_MAP1(round(u));
    case kPwSin:
      ZOI_MAP1(sin(u));
    case kPwCos:
      ZOI_MAP1(cos(u));
    case kPwTan:
      ZOI_EACH1(__builtin_tanf);
    case kPwAsin:
      ZOI_EACH1(__builtin_asinf);
    case kPwAcos:
      ZOI_EACH1(__builtin_acosf);
    case kPwAtan:
      ZOI_EACH1(__builtin_atanf);
    case kPwSinh:
      ZOI_EACH1(__builtin_sinhf);
    case kPwCosh:
      ZOI_EACH1(__builtin_coshf);
    case kPwAsinh:
      ZOI_EACH1(__builtin_asinhf);
    case kPwAcosh:
      ZOI_EACH1(__builtin_acoshf);
    case kPwAtanh:
      ZOI_EACH1(__builtin_atanhf);
    case kPwEqual:
      ZOI_MAP2(truth(equal(u, v)));
    case kPwLess:
      ZOI_MAP2(truth(less(u, v)));
    case kPwLessEqual:
      ZOI_MAP2(truth(less_equal(u, v)));
    case kPwGreater:
      ZOI_MAP2(truth(less(v, u)));
    case kPwGreaterEqual:
      ZOI_MAP2(truth(less_equal(v, u)));
    case kPwAnd:
      ZOI_MAP2(untruth(either(equal(u, zero()), equal(v, zero()))));
    case kPwOr:
      ZOI_MAP2(untruth(both(equal(u, zero()), equal(v, zero()))));
    case kPwXor:
      ZOI_MAP2(bit_xor(is_true(u), is_true(v)));
    case kPwNot:
      ZOI_MAP1(truth(equal(u, zero())));
    case kPwIsNan:
      ZOI_MAP1(truth(unordered(u, u)));
    case kPwIsInf:
      ZOI_MAP1(truth(equal(abs(u), set1(__builtin_inff()))));
    case kPwWhere:
      ZOI_MAP3(select(equal(u, zero()), w, v));
    case kPwRelu:
      ZOI_MAP1(activate<kActRelu>(u, u, u));
    case kPwClip:
      ZOI_MAP3(activate<kActClip>(u, v, w));
    case kPwSigmoid:
      ZOI_MAP1(sigmoid(u));
    case kPwTanh:
      ZOI_MAP1(tanh(u));
    case kPwGelu:
      ZOI_MAP1(activate<kActGelu>(u, u, u));
    case kPwGeluTanh:
      ZOI_MAP1(activate<kActGeluTanh>(u, u, u));
    case kPwSilu:
      ZOI_MAP1(activate<kActSilu>(u, u, u));
    case kPwHardSigmoid:
      ZOI_MAP3(activate<kActHardSigmoid>(u, v, w));
    case kPwHardSwish:
      ZOI_MAP3(activate<kActHardSwish>(u, v, w));
    case kPwLeakyRelu:
      ZOI_MAP2(activate<kActLeakyRelu>(u, v, v));
    case kPwElu:
      ZOI_MAP2(activate<kActElu>(u, v, v));
    case kPwSoftplus:
      ZOI_MAP1(softplus(u));
    case kPwMish:
      ZOI_MAP1(activate<kActMish>(u, u, u));
    case kPwSoftsign:
      ZOI_MAP1(div(u, add(set1(1.0f), abs(u))));
    default:
      return;
  }
}
#undef ZOI_MAP1
#undef ZOI_MAP2
#undef ZOI_MAP3
#undef ZOI_EACH1
#undef ZOI_EACH2

/// How the iteration space is cut into tiles: `rows` whole rows of `cols`, or one piece of at most `cols` of a row.
struct Tiling {
  int64_t inner, outer, rows, cols, pieces, tiles;
};
ZOI_INLINE Tiling tiling(const PointwiseProblem& p) {
  const int64_t last = p.ndim - 1;
  Tiling t = {p.ndim ? p.shape[last] : 1, 1, 1, 0, 1, 0};
  for (int64_t d = 0; d < last; d++) t.outer *= p.shape[d];
  if (t.inner == 0 || t.outer == 0) return t;
  if (t.outer > 1 && t.inner < kShortRow) {
    t.rows = kBlock / t.inner;
    t.cols = t.inner;
    t.tiles = (t.outer + t.rows - 1) / t.rows;
    return t;
  }
  bool direct = p.length == 1 && p.out_dtype == kF32 && (p.ndim == 0 || p.out_stride[last] == 1);
  for (int64_t k = 0; k < p.inputs; k++) {
    const int64_t stride = p.ndim ? p.in_stride[k * kPointwiseDims + last] : 0;
    direct &= p.in_dtype[k] == kF32 && (stride == 0 || stride == 1);
  }
  t.cols = direct ? kLongBlock : kBlock;
  t.pieces = t.inner <= t.cols ? 1 : (t.inner + t.cols - 1) / t.cols;
  t.tiles = t.outer * t.pieces;
  return t;
}

/// A place in the outer dimensions.
struct Row {
  int64_t index[kPointwiseDims];
};
ZOI_INLINE int64_t offset_of(const PointwiseProblem& p, const Row& row, const int64_t* strides) {
  int64_t offset = 0;
  for (int64_t d = 0; d < p.ndim - 1; d++) offset += row.index[d] * strides[d];
  return offset;
}
ZOI_INLINE void next(const PointwiseProblem& p, Row& row) {
  for (int64_t d = p.ndim - 1; d-- > 0;) {
    if (++row.index[d] < p.shape[d]) return;
    row.index[d] = 0;
  }
}
/// Whether rows follow each other without gaps, so that a tile of several rows is contiguous.
ZOI_INLINE bool dense_rows(const PointwiseProblem& p, const int64_t* strides) {
  int64_t expected = 1;
  for (int64_t d = p.ndim; d-- > 0; expected *= p.shape[d])
    if (p.shape[d] != 1 && strides[d] != expected) return false;
  return true;
}

template <class T>
ZOI_INLINE void pack_as(const PointwiseProblem& p, Row row, int64_t rows, int64_t cols, int64_t column,
                        const int64_t* strides, const T* x, float* to) {
  const int64_t step = p.ndim ? strides[p.ndim - 1] : 0;
  for (int64_t r = 0; r < rows; r++, to += cols, next(p, row)) {
    const T* from = x + offset_of(p, row, strides) + column * step;
    if (step == 1)
      for (int64_t i = 0; i < cols; i++) to[i] = static_cast<float>(from[i]);
    else
      for (int64_t i = 0; i < cols; i++) to[i] = static_cast<float>(from[i * step]);
  }
}
[[gnu::noinline]] static void pack(const PointwiseProblem& p, const Row& row, int64_t rows, int64_t cols,
                                   int64_t column, int64_t dtype, const int64_t* strides, const void* x, float* to) {
  switch (dtype) {
    case kF32:
      return pack_as(p, row, rows, cols, column, strides, static_cast<const float*>(x), to);
    case kI8:
      return pack_as(p, row, rows, cols, column, strides, static_cast<const int8_t*>(x), to);
    case kI32:
      return pack_as(p, row, rows, cols, column, strides, static_cast<const int32_t*>(x), to);
    case kI64:
      return pack_as(p, row, rows, cols, column, strides, static_cast<const int64_t*>(x), to);
    default:
      pack_as(p, row, rows, cols, column, strides, static_cast<const uint8_t*>(x), to);
      break;
  }
  if (dtype == kBool)
    for (int64_t i = 0; i < rows * cols; i++) to[i] = to[i] != 0.0f ? 1.0f : 0.0f;
}
[[gnu::noinline]] static void unpack(const PointwiseProblem& p, Row row, int64_t rows, int64_t cols, int64_t column,
                                     const float* from, void* y) {
  const int64_t step = p.ndim ? p.out_stride[p.ndim - 1] : 0;
  for (int64_t r = 0; r < rows; r++, from += cols, next(p, row)) {
    const int64_t offset = offset_of(p, row, p.out_stride) + column * step;
    if (p.out_dtype == kBool) {
      uint8_t* to = static_cast<uint8_t*>(y) + offset;
      for (int64_t i = 0; i < cols; i++) to[i * step] = from[i] != 0.0f;
    } else {
      float* to = static_cast<float*>(y) + offset;
      for (int64_t i = 0; i < cols; i++) to[i * step] = from[i];
    }
  }
}

enum class Access : uint8_t { direct, splat, packed, fixed };  // fixed: packed once, the same in every tile

static void run(const void* raw, Lane lane) {
  const auto& args = *static_cast<const PointwiseArgs*>(raw);
  const PointwiseProblem& p = args.problem;
  const Tiling t = tiling(p);
  const Range range = lane_range(t.tiles, lane);
  if (range.begin >= range.end) return;
  auto* splats = reinterpret_cast<float*>(lane.scratch);  // one vector for each input and immediate
  float* blocks = splats + kPointwiseResultBase * kWidth;
  float* results = blocks + p.inputs * kBlock;
  const int64_t last = p.ndim - 1;
  const auto inner_stride = [&](const int64_t* strides) { return p.ndim ? strides[last] : 0; };

  Values values;
  Access access[kPointwiseInputs];
  for (int64_t k = 0; k < p.inputs; k++) {
    const int64_t* strides = p.in_stride + k * kPointwiseDims;
    const int64_t step = inner_stride(strides);
    bool constant = true;
    for (int64_t d = 0; d < last; d++) constant &= strides[d] == 0;
    if (t.rows > 1)
      access[k] = constant                                          ? (step == 0 ? Access::splat : Access::fixed)
                  : p.in_dtype[k] == kF32 && dense_rows(p, strides) ? Access::direct
                                                                    : Access::packed;
    else
      access[k] = step == 0 || t.inner == 1            ? Access::splat
                  : p.in_dtype[k] == kF32 && step == 1 ? Access::direct
                                                       : Access::packed;
    if (access[k] == Access::splat)
      values.set(k, splats + k * kWidth, 0);
    else
      values.set(k, blocks + k * kBlock, -1);
    if (access[k] == Access::fixed)
      pack(p, Row{}, t.rows, t.cols, 0, p.in_dtype[k], strides, args.x[k], blocks + k * kBlock);
  }
  const int64_t out_step = inner_stride(p.out_stride);
  const bool direct_out =
      p.out_dtype == kF32 && (t.rows > 1 ? dense_rows(p, p.out_stride) : out_step == 1 || t.inner == 1);
  for (int64_t i = 0; i < p.length; i++) {
    const int64_t* code = p.code + 4 * i;
    for (int64_t j = 1; j <= pointwise_arity(code[0]); j++)
      if (code[j] >= kPointwiseImmBase && code[j] < kPointwiseResultBase) {
        float* splat = splats + code[j] * kWidth;
        store(splat, set1(static_cast<float>(p.imm[code[j] - kPointwiseImmBase])));
        values.set(code[j], splat, 0);
      }
    values.set(kPointwiseResultBase + i, results + i * kBlock, -1);
  }

  Row row = {};
  int64_t first_row = range.begin * t.rows, piece = 0;
  if (t.pieces > 1) {
    first_row = range.begin / t.pieces;
    piece = range.begin % t.pieces;
  }
  for (int64_t d = last, rest = first_row; d-- > 0; rest /= p.shape[d]) row.index[d] = rest % p.shape[d];
  bool new_row = true;
  for (int64_t tile = range.begin; tile < range.end; tile++) {
    const int64_t rows = t.outer - first_row < t.rows ? t.outer - first_row : t.rows;
    const int64_t column = piece * t.cols;
    const int64_t cols = t.inner - column < t.cols ? t.inner - column : t.cols;
    const int64_t n = rows * cols;
    for (int64_t k = 0; k < p.inputs; k++) {
      const int64_t* strides = p.in_stride + k * kPointwiseDims;
      if (access[k] == Access::direct) {
        values.p[k] = static_cast<const float*>(args.x[k]) + offset_of(p, row, strides) + column;
      } else if (access[k] == Access::splat) {
        if (!new_row) continue;
        float* splat = splats + k * kWidth;
        if (p.in_dtype[k] == kF32) {
          *splat = static_cast<const float*>(args.x[k])[offset_of(p, row, strides)];
        } else {
          pack(p, row, 1, 1, 0, p.in_dtype[k], strides, args.x[k], splat);
        }
        store(splat, broadcast(splat));
      } else if (access[k] == Access::packed) {
        pack(p, row, rows, cols, column, p.in_dtype[k], strides, args.x[k], blocks + k * kBlock);
      }
    }
    for (int64_t i = 0; i < p.length; i++) {
      float* y = results + i * kBlock;
      if (i == p.length - 1 && direct_out) y = static_cast<float*>(args.y) + offset_of(p, row, p.out_stride) + column;
      execute(p.code + 4 * i, values, y, n);
    }
    if (!direct_out) unpack(p, row, rows, cols, column, results + (p.length - 1) * kBlock, args.y);
    new_row = ++piece == t.pieces;
    if (!new_row) continue;
    piece = 0;
    first_row += rows;
    for (int64_t r = 0; r < rows; r++) next(p, row);
  }
}

static bool supports(const void* problem) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  if (p.compute != kF32 || (p.out_dtype != kF32 && p.out_dtype != kBool)) return false;
  for (int64_t k = 0; k < p.inputs; k++) {
    const int64_t dtype = p.in_dtype[k];
    if (dtype != kF32 && dtype != kBool && dtype != kI8 && dtype != kU8 && dtype != kI32 && dtype != kI64) return false;
  }
  return true;
}
static int64_t slices(const void* problem) { return tiling(*static_cast<const PointwiseProblem*>(problem)).tiles; }
static int64_t scratch(const void* problem) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  return (kPointwiseResultBase * kWidth + (p.inputs + p.length) * kBlock) * 4;
}
static double cost(const void* problem) {
  const auto& p = *static_cast<const PointwiseProblem*>(problem);
  const Tiling t = tiling(p);
  return 60.0 + static_cast<double>(t.tiles) * 20.0 +
         static_cast<double>(t.inner) * static_cast<double>(t.outer) * static_cast<double>(p.length) * 4.0 / kWidth;
}

static constexpr Kernel record(const char* name, Arch arch) {
  return {name, arch, run, supports, slices, scratch, nullptr, nullptr, cost, false};
}

}  // namespace zoi::ZOI_ISA
