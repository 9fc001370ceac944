// Elementary functions of a vector, float32. Include it after the ISA's header (simd/avx2.h or simd/avx512.h).
//
// Every function takes any float: NaN stays NaN, infinities give the limits, denormal arguments and results are right.
// The largest errors, in units of the last place, over all floats: exp 1, expm1 1.5, log 1, tanh 5, sigmoid 2.5, erf 6,
// sin and cos 2, softplus 4. Coefficients are minimax fits (iteratively reweighted least squares in float64).
#pragma once

namespace zoi::ZOI_ISA {

// Horner's rule, highest power first.
ZOI_INLINE V polynomial(V, V p) { return p; }
template <class... Rest>
ZOI_INLINE V polynomial(V x, V p, float c, Rest... rest) {
  return polynomial(x, fma(p, x, set1(c)), rest...);
}
template <class... Rest>
ZOI_INLINE V polynomial(V x, float c, Rest... rest) {
  return polynomial(x, set1(c), rest...);
}

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2; exp(r) = 1 + r + r^2 q(r).
ZOI_INLINE V exp_rest(V x, V n) { return fnma(n, set1(-1.90465421e-09f), fnma(n, set1(0.693147182f), x)); }
ZOI_INLINE V exp_q(V r) {
  return polynomial(r, 0.00138145965f, 0.00836871751f, 0.041668389f, 0.166665211f, 0.49999994f);
}

ZOI_INLINE V exp_clamped(V x) {  // x in [-104, 89] or NaN
  V n = round(mul(x, set1(1.44269504f))), r = exp_rest(x, n);
  return ldexp(fma(fma(exp_q(r), r, set1(1.0f)), r, set1(1.0f)), n);
}
ZOI_INLINE V exp(V x) { return exp_clamped(min_second(set1(89.0f), max_second(set1(-104.0f), x))); }
ZOI_INLINE V exp_nonpositive(V x) {
  x = max_second(set1(-104.0f), x);
  if constexpr (kLdexpIsCheap) {
    return exp_clamped(x);
  } else {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, here as the exponent of 2^(n + 100); then
    // 2^-100 makes the result denormal where it is.
    const V magic = set1(12582912.0f + 227.0f);
    V t = fma(x, set1(1.44269504f), magic), r = exp_rest(x, sub(t, magic));
    V p = fma(fma(exp_q(r), r, set1(1.0f)), r, set1(1.0f));
    return mul(mul(p, as_float(shift_left<23>(as_int(t)))), set1(0x1p-100f));
  }
}

/// exp(scale d) for d <= 0 as 2^(c d), so that the scale costs nothing; results below 2^-125 are 0, and the relative
/// error is that of rounding scale d, plus 2^-23.
struct FlushedExponential {
  V c, lowest;

  [[gnu::always_inline]] explicit FlushedExponential(float scale)
      : c(set1(scale * 1.44269504f)), lowest(set1(-125.0f / (scale * 1.44269504f))) {}
  [[gnu::always_inline]] V operator()(V d) const {
    const auto power = [](V f) __attribute__((always_inline)) {
      return polynomial(f, 0.0013264697f, 0.00967153441f, 0.0555073395f, 0.240222424f, 0.693147004f, 1.0f);
    };
    if constexpr (kLdexpIsCheap) {
      V u = max_second(set1(-150.0f), mul(d, c)), n = round(u);
      return ldexp(power(sub(u, n)), n);
    } else {
      // Adding 1.5 * 2^23 rounds to an integer n and leaves it in the low bits, here as the exponent of 2^n.
      const V magic = set1(12582912.0f + 127.0f);
      V t = fma(d, c, magic), n = sub(t, magic);
      V p = power(fma(d, c, bit_xor(n, set1(-0.0f))));
      return select(less(d, lowest), zero(), mul(p, as_float(shift_left<23>(as_int(t)))));
    }
  }
};
ZOI_INLINE V exp_flushed(V d) { return FlushedExponential(1.0f)(d); }

/// exp(x) - 1 without cancellation, for x <= 88.
ZOI_INLINE V expm1(V x) {
  x = max_second(set1(-30.0f), x);
  V n = round(mul(x, set1(1.44269504f))), r = exp_rest(x, n), scale = ldexp(set1(1.0f), n);
  return fma(scale, fma(mul(exp_q(r), r), r, r), sub(scale, set1(1.0f)));
}

/// -inf at 0, NaN below.
ZOI_INLINE V log(V x) {
  const V tiny = set1(1.17549435e-38f);
  M denormal = less(x, tiny);
  V normal = select(denormal, mul(x, set1(8388608.0f)), x);
  // m in [sqrt(1/2), sqrt(2)), so that the result near 1 has no cancellation between the exponent's part and m's.
  VI exponent = shift_right<23>(isub(as_int(normal), iset1(0x3f3504f3)));
  V m = as_float(isub(as_int(normal), shift_left<23>(exponent)));
  V e = sub(to_float(exponent), select(denormal, set1(23.0f), zero()));
  V f = sub(m, set1(1.0f));
  V f2 = mul(f, f);
  V p = polynomial(f, -0.0763442963f, 0.127615497f, -0.131601945f, 0.142017618f, -0.166233569f, 0.200012267f,
                   -0.250008225f, 0.333333313f);
  V small = fma(e, set1(-2.12194440e-4f), mul(mul(f2, f), p));
  V result = fma(e, set1(0.693359375f), add(f, fnma(f2, set1(0.5f), small)));
  const V infinity = set1(__builtin_inff());
  result = select(less(x, infinity), result, x);  // +inf and NaN are their own logarithm
  result = select(less(x, zero()), set1(__builtin_nanf("")), result);
  return select(equal(x, zero()), set1(-__builtin_inff()), result);
}

/// log(1 + t) for t in [0, 1].
ZOI_INLINE V log1p_unit(V t) {
  V p = polynomial(t, 0.00344856386f, 0.239239022f, 1.06813157f, 1.0f);
  V q = polynomial(t, 0.075701952f, 0.68997395f, 1.56813157f, 1.0f);
  return div(mul(t, p), q);
}

// tanh and erf: x P(x^2) / Q(x^2), with x^2 clamped where the function reaches 1; beyond, x itself carries the
// product over 1, which the last clamp makes exact.
ZOI_INLINE V clamp_to_one(V x) { return min_second(set1(1.0f), max_second(set1(-1.0f), x)); }
ZOI_INLINE V tanh(V x) {
  V t = min_second(set1(81.36f), mul(x, x));
  V p = polynomial(t, 1.3382853e-08f, 2.06347922e-05f, 0.00349739613f, 0.13382636f, 1.0f);
  V q = polynomial(t, 7.78966296e-07f, 0.000328841561f, 0.0258841291f, 0.467159569f, 1.0f);
  return clamp_to_one(mul(x, div(p, q)));
}
ZOI_INLINE V erf(V x) {
  V t = min_second(set1(15.3664f), mul(x, x));
  V p = polynomial(t, 2.05007882e-06f, 0.00028486157f, 0.00376502681f, 0.0527468584f, 0.190393925f, 1.12837911f);
  V q = polynomial(t, 3.80905258e-05f, 0.00116237812f, 0.0149680339f, 0.114103749f, 0.502064884f, 1.0f);
  return clamp_to_one(mul(x, div(p, q)));
}

/// exp(-|x|), from which sigmoid and softplus keep their relative accuracy on both sides.
ZOI_INLINE V exp_minus_abs(V x) { return exp_nonpositive(bit_or(x, set1(-0.0f))); }
ZOI_INLINE V sigmoid(V x) {
  V e = exp_minus_abs(x);
  return div(select(less(x, zero()), e, set1(1.0f)), add(e, set1(1.0f)));
}
ZOI_INLINE V softplus(V x) { return add(max_second(zero(), x), log1p_unit(exp_minus_abs(x))); }

// x - n pi/2 in three parts: the first difference is exact for |x| < 2^23, the others are rounded once.
inline constexpr float kTrigLimit = 65536.0f;
ZOI_INLINE V quarter_turn(V x, V n) {
  V r = fnma(n, set1(1.57079637f), x);
  r = fnma(n, set1(-4.37113883e-08f), r);
  return fnma(n, set1(-1.71512451e-15f), r);
}
ZOI_INLINE V sin_or_cos(V x, int quarter) {  // sin(x + quarter pi/2)
  V n = round(mul(x, set1(0.636619747f)));
  V r = quarter_turn(x, n), z = mul(r, r);
  VI turn = iadd(to_int(n), iset1(quarter));
  V s = polynomial(z, 2.71811405e-06f, -0.000198393114f, 0.00833332911f, -0.166666672f);
  s = fma(mul(z, s), r, r);
  V c = polynomial(z, -2.72056781e-07f, 2.47994594e-05f, -0.00138888834f, 0.0416666679f);
  c = fma(mul(z, z), c, fnma(z, set1(0.5f), set1(1.0f)));
  V even = select(equal(to_float(iand(turn, iset1(1))), zero()), s, c);
  return bit_xor(even, as_float(shift_left<30>(iand(turn, iset1(2)))));
}
// Large angles need more bits of pi than the reduction above has: one lane at a time, in double.
[[gnu::noinline, gnu::cold, maybe_unused]] static void sin_or_cos_slow(const float* x, float* y, bool cosine) {
  for (int i = 0; i < kWidth; i++) {
    double v = x[i];
    y[i] = static_cast<float>(cosine ? __builtin_cos(v) : __builtin_sin(v));
  }
}
ZOI_INLINE V sin_or_cos_any(V x, bool cosine) {
  if (__builtin_expect(any(less(set1(kTrigLimit), abs(x))), 0)) {
    float in[kWidth], out[kWidth];
    store(in, x);
    sin_or_cos_slow(in, out, cosine);
    return load(out);
  }
  return sin_or_cos(x, cosine ? 1 : 0);
}
ZOI_INLINE V sin(V x) { return sin_or_cos_any(x, false); }
ZOI_INLINE V cos(V x) { return sin_or_cos_any(x, true); }

/// The activation `act` of activation.h.
template <int64_t act>
ZOI_INLINE V activate(V v, V p0, V p1) {
  const V one = set1(1.0f), half = set1(0.5f);
  if constexpr (act == kActRelu) {
    return max_second(zero(), v);
  } else if constexpr (act == kActClip) {
    return min_second(p1, max_second(p0, v));
  } else if constexpr (act == kActSigmoid) {
    return sigmoid(v);
  } else if constexpr (act == kActTanh) {
    return tanh(v);
  } else if constexpr (act == kActGelu) {
    return mul(mul(half, v), add(one, erf(mul(v, set1(0.707106781f)))));
  } else if constexpr (act == kActGeluTanh) {
    V inner = mul(v, fma(mul(v, v), set1(0.0356774081f), set1(0.797884561f)));
    return mul(mul(half, v), add(one, tanh(inner)));
  } else if constexpr (act == kActSilu) {
    return mul(v, sigmoid(v));
  } else if constexpr (act == kActHardSigmoid) {
    return min_second(one, max_second(zero(), fma(p0, v, p1)));
  } else if constexpr (act == kActHardSwish) {
    return mul(v, min_second(one, max_second(zero(), fma(p0, v, p1))));
  } else if constexpr (act == kActLeakyRelu) {
    return select(less(v, zero()), mul(p0, v), v);
  } else if constexpr (act == kActElu) {
    return select(less(v, zero()), mul(p0, expm1(min_second(zero(), v))), v);
  } else if constexpr (act == kActSoftplus) {
    return softplus(v);
  } else if constexpr (act == kActMish) {
    // tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); it is 1 in float32 long before e^2 overflows.
    V e = exp_clamped(min_second(set1(20.0f), max_second(set1(-104.0f), v)));
    V n = mul(e, add(e, set1(2.0f)));
    return mul(v, div(n, add(n, set1(2.0f))));
  } else {
    return v;
  }
}

template <int64_t act>
struct ActivationTag {
  static constexpr int64_t value = act;
};
/// Calls `body(tag)` with the tag whose `value` is `act`: the switch runs once, outside the loops of `body`, a
/// generic lambda: [&](auto tag) __attribute__((always_inline)) { ... activate<decltype(tag)::value>(v, p0, p1) ... }
template <class Body>
ZOI_INLINE void with_activation(int64_t act, Body body) {
  switch (act) {
    case kActRelu:
      return body(ActivationTag<kActRelu>{});
    case kActClip:
      return body(ActivationTag<kActClip>{});
    case kActSigmoid:
      return body(ActivationTag<kActSigmoid>{});
    case kActTanh:
      return body(ActivationTag<kActTanh>{});
    case kActGelu:
      return body(ActivationTag<kActGelu>{});
    case kActGeluTanh:
      return body(ActivationTag<kActGeluTanh>{});
    case kActSilu:
      return body(ActivationTag<kActSilu>{});
    case kActHardSigmoid:
      return body(ActivationTag<kActHardSigmoid>{});
    case kActHardSwish:
      return body(ActivationTag<kActHardSwish>{});
    case kActLeakyRelu:
      return body(ActivationTag<kActLeakyRelu>{});
    case kActElu:
      return body(ActivationTag<kActElu>{});
    case kActSoftplus:
      return body(ActivationTag<kActSoftplus>{});
    case kActMish:
      return body(ActivationTag<kActMish>{});
    default:
      return body(ActivationTag<kActNone>{});
  }
}

}  // namespace zoi::ZOI_ISA
