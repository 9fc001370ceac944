"""pointwise: chains of element-by-element operations over strided operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from harness import (
    Array,
    Step,
    assert_close,
    check,
    dtype_code,
    gaps_untouched,
    kernels,
    padded,
    run_everywhere,
    strided,
    strides,
)

OPS = [
    "copy", "add", "sub", "mul", "div", "max", "min", "pow", "mod", "fmod", "neg", "abs", "sign", "sqrt", "rsqrt",
    "reciprocal", "exp", "log", "erf", "floor", "ceil", "round", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "asinh", "acosh", "atanh", "equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "xor",
    "not", "is_nan", "is_inf", "where", "relu", "clip", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "hard_sigmoid",
    "hard_swish", "leaky_relu", "elu", "softplus", "mish", "softsign",
]  # fmt: skip
OP = {name: i for i, name in enumerate(OPS)}
COMPUTE = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.int64): 10}
SIMD = ("generic", "avx2", "avx512")
IMM, RESULT = 8, 16

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.where(x > 0, x, 0) + np.log1p(np.exp(-np.abs(x)))


REFERENCE: dict[str, Callable[..., Array]] = {
    "copy": lambda a: a, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "max": np.maximum, "min": np.minimum, "pow": np.power, "mod": np.mod, "fmod": np.fmod,
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a),
    "reciprocal": lambda a: 1 / a, "exp": np.exp, "log": np.log, "erf": erf, "floor": np.floor, "ceil": np.ceil,
    "round": np.rint, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "equal": np.equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
    "not": np.logical_not, "is_nan": np.isnan, "is_inf": np.isinf, "where": lambda a, b, c: np.where(a != 0, b, c),
    "relu": lambda a: np.maximum(a, 0), "clip": lambda a, b, c: np.minimum(np.maximum(a, b), c), "sigmoid": sigmoid,
    "tanh": np.tanh, "gelu": lambda a: 0.5 * a * (1 + erf(a / math.sqrt(2))),
    "gelu_tanh": lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))),
    "silu": lambda a: a * sigmoid(a), "hard_sigmoid": lambda a, b, c: np.clip(b * a + c, 0, 1),
    "hard_swish": lambda a, b, c: a * np.clip(b * a + c, 0, 1), "leaky_relu": lambda a, b: np.where(a < 0, b * a, a),
    "elu": lambda a, b: np.where(a < 0, b * np.expm1(a), a), "softplus": softplus,
    "mish": lambda a: a * np.tanh(softplus(a)), "softsign": lambda a: a / (1 + np.abs(a)),
}  # fmt: skip
TERNARY = {"where", "clip", "hard_sigmoid", "hard_swish"}
BINARY = {"add", "sub", "mul", "div", "max", "min", "pow", "mod", "fmod", "equal", "less", "less_equal", "greater",
          "greater_equal", "and", "or", "xor", "leaky_relu", "elu"}  # fmt: skip
# Results that are differences of nearly equal numbers are only as good as the larger of the two.
LOOSE = {"gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "mod"}


def arity(op: str) -> int:
    return 3 if op in TERNARY else 2 if op in BINARY else 1


def code(*instructions: Sequence[int | str]) -> list[int]:
    """Instructions (operation, operands...) as the problem's words."""
    return [w for op, *args in instructions for w in padded([OP[str(op)], *map(int, args)], 4)]


def problem(y: Array, inputs: Sequence[Array], words: list[int], imm: Sequence[float] = (), compute: Any = np.float32
            ) -> dict[str, Any]:  # fmt: skip
    """The problem over arrays that broadcast to y's shape."""
    views = [np.broadcast_to(x, y.shape) for x in inputs]
    return {
        "ndim": y.ndim, "shape": padded(y.shape, 6), "inputs": len(inputs),
        "in_dtype": padded([dtype_code(x) for x in inputs], 8),
        "in_stride": padded([s for v in views for s in padded(strides(v), 6)], 48),
        "out_dtype": dtype_code(y), "out_stride": padded(strides(y), 6), "compute": COMPUTE[np.dtype(compute)],
        "length": len(words) // 4, "code": padded(words, 96), "imm": [*imm, *[0.0] * (8 - len(imm))],
    }  # fmt: skip


def operands(y: Array, inputs: Sequence[Array]) -> dict[str, Array]:
    return {**{f"x{i}": x for i, x in enumerate(inputs)}, "y": y}


def values(rng: np.random.Generator, op: str, shape: Sequence[int]) -> Array:
    """Values of the operation's domain, with zeros of both signs, NaN and infinities among them."""
    x = rng.standard_normal(shape) * 3
    if op in ("asin", "acos", "atanh"):
        x = rng.uniform(-1, 1, shape)
    if op in ("log", "sqrt", "rsqrt", "pow"):
        x = np.abs(x) + 1e-3
    if op == "acosh":
        x = np.abs(x) + 1
    if op in ("equal", "less_equal", "greater_equal", "and", "or", "xor", "not", "where"):
        x = np.rint(x / 3)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf]
    flat = x.astype(np.float32).ravel()
    if flat.size > 10:
        flat[-5:] = special
    return flat.reshape(shape)


@pytest.mark.parametrize("op", OPS)
def test_every_operation(op: str) -> None:
    rng = np.random.default_rng(OP[op])
    inputs = [values(rng, op, (77,)) for _ in range(arity(op))]
    for other in inputs[1:]:
        rng.shuffle(other[:72])
        other[72:] = 1.5
    if op == "clip":
        inputs[1:] = [np.full(77, -1, np.float32), np.full(77, 2, np.float32)]
    if op in ("hard_sigmoid", "hard_swish"):
        inputs[1:] = [np.full(77, 1 / 6, np.float32), np.full(77, 0.5, np.float32)]
    y = np.empty(77, np.float32)
    with np.errstate(all="ignore"):
        wanted = REFERENCE[op](*[x.astype(np.float64) for x in inputs])
    words = code((op, *range(arity(op))))
    for kernel in run_everywhere("pointwise", problem(y, inputs, words), operands(y, inputs), SIMD):
        assert_close(y, wanted, 1e-6, 3e-7 if op in LOOSE else 0, f"{kernel} {op}")


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, 1.7, 0.0])
def test_power_of_an_immediate(exponent: float) -> None:
    x = np.concatenate([np.linspace(0.01, 9, 40), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(np.float32)
    y = np.empty_like(x)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), np.full(x.shape, np.float32(exponent), np.float64))
    p = problem(y, [x], code(("pow", 0, IMM)), [exponent])
    for kernel in run_everywhere("pointwise", p, operands(y, [x]), SIMD):
        assert_close(y, wanted, 1e-6, 0, kernel)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 31, 64, 511, 512, 513, 1500, 8191, 8200, 17000])
def test_any_size(size: int) -> None:
    rng = np.random.default_rng(size)
    a, b = rng.standard_normal((2, size), dtype=np.float32)
    y = np.empty_like(a)
    for kernel in run_everywhere("pointwise", problem(y, [a, b], code(("add", 0, 1))), operands(y, [a, b]), SIMD):
        assert np.array_equal(y, a + b), kernel
    chain = code(("mul", 0, IMM), ("add", RESULT, 1), ("relu", RESULT + 1), ("sub", RESULT + 2, RESULT))
    wanted = np.maximum(a * np.float32(0.3) + b, 0) - a * np.float32(0.3)
    for kernel in run_everywhere("pointwise", problem(y, [a, b], chain, [0.3]), operands(y, [a, b]), SIMD):
        assert_close(y, wanted, 1e-6, 1e-6, kernel)


def broadcast_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """A strided array whose dimensions are those of `shape` or 1."""
    own = [n if rng.random() < 0.7 else 1 for n in shape]
    x = strided(rng, own, dtype, dense=bool(rng.random() < 0.4))
    if np.dtype(dtype) == np.bool_:
        x[...] = rng.random(own) < 0.5
    elif np.dtype(dtype).kind == "f":
        x[...] = rng.standard_normal(own)
    else:
        x[...] = rng.integers(0, 100, own)
    if own and own[-1] > 1 and rng.random() < 0.3:
        x = x[..., ::-1]
    return x


@pytest.mark.parametrize("seed", range(60))
def test_any_strides_and_broadcasts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    largest = [150, 9, 40, 6, 70, 5][: rng.integers(1, 7)]
    shape = tuple(int(n) for n in rng.integers(1, largest))[::-1]
    shape = shape if math.prod(shape) < 40000 else shape[-2:]
    dtypes = rng.choice(["f4", "f4", "f4", "?", "i4", "i8", "u1", "i1"], 3)
    inputs = [broadcast_of(rng, shape, d) for d in dtypes]
    y = strided(rng, shape, rng.choice(["f4", "f4", "?"]), dense=bool(rng.random() < 0.5))
    length = int(rng.integers(1, 4))
    chain = [("add", 0, 1), ("max", RESULT, 2), ("mul", RESULT + 1, IMM)][:length]
    first = inputs[0].astype(np.float32) + inputs[1].astype(np.float32)
    wanted = [first, np.maximum(first, inputs[2].astype(np.float32))]
    wanted.append(wanted[1] * np.float32(0.7))
    result = np.broadcast_to(wanted[length - 1], shape)
    used = inputs[: 2 if length == 1 else 3]
    for kernel in run_everywhere("pointwise", problem(y, used, code(*chain), [0.7]), operands(y, used), SIMD):
        if y.dtype == np.bool_:
            assert np.array_equal(y.view(np.uint8), (result != 0).astype(np.uint8)), kernel
        else:
            assert np.array_equal(y, result), kernel
        assert gaps_untouched(y), kernel


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
@pytest.mark.parametrize("compute", [np.float32, np.float64, np.int64])
def test_every_element_type(dtype: str, compute: Any) -> None:
    rng = np.random.default_rng(1)
    x = (rng.random(70) < 0.5) if dtype == "?" else rng.integers(0, 50, 70).astype(dtype)
    for out in (dtype, "f4", "i8", "f2", "?"):
        y = np.empty(70, out)
        words = code(("add", 0, IMM), ("mul", RESULT, 0))
        wanted = (x.astype(compute) + 1) * x.astype(compute)
        p = problem(y, [x], words, [1.0], compute)
        for kernel in run_everywhere("pointwise", p, operands(y, [x])):
            assert np.array_equal(y, wanted.astype(out)) or (out in ("i1", "u1")), f"{kernel} {out}"


def test_half_rounds_to_nearest_even() -> None:
    x = np.concatenate([np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32),
                        np.random.default_rng(0).standard_normal(4000).astype(np.float32) * 1e-4,
                        np.float32([65519.9, 65520, 65536, 2**-24, 2**-25, 2**-25 * 1.01, 3 * 2**-25])])  # fmt: skip
    y, back = np.empty(x.shape, np.float16), np.empty(x.shape, np.float32)
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float16)
    for kernel in run_everywhere("pointwise", problem(y, [x], code(("copy", 0))), operands(y, [x])):
        np.testing.assert_array_equal(y, wanted, kernel)
    for kernel in run_everywhere("pointwise", problem(back, [wanted], code(("copy", 0))), operands(back, [wanted])):
        np.testing.assert_array_equal(back, wanted.astype(np.float32), kernel)


def test_integers_never_fault() -> None:
    a = np.array([7, -7, 5, np.iinfo(np.int64).min, 3, 2, -2, 0], np.int64)
    b = np.array([2, 2, 0, -1, -2, 62, 3, -1], np.int64)
    wanted = {
        "div": [3, -3, 0, np.iinfo(np.int64).min, -1, 0, 0, 0], "mod": [1, 1, 0, 0, -1, 2, 1, 0],
        "fmod": [1, -1, 0, 0, 1, 2, -2, 0], "max": np.maximum(a, b), "sign": np.sign(a),
        "pow": [49, 49, 1, 0, 0, 1 << 62, -8, 0], "neg": -a, "relu": np.maximum(a, 0),
    }  # fmt: skip
    y = np.empty_like(a)
    for op, result in wanted.items():
        p = problem(y, [a, b], code((op, *range(arity(op)))), compute=np.int64)
        for kernel in run_everywhere("pointwise", p, operands(y, [a, b])):
            assert np.array_equal(y, result), f"{kernel} {op}"


def test_floats_become_integers_by_truncation_and_saturate() -> None:
    x = np.array([1.9, -1.9, 300.0, -300.0, np.nan, np.inf, -np.inf, 1e30], np.float32)
    y8, y64 = np.empty(8, np.int8), np.empty(8, np.int64)
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for kernel in run_everywhere("pointwise", problem(y8, [x], code(("copy", 0))), operands(y8, [x])):
        assert y8.tolist() == [1, -1, 127, -128, 0, 127, -128, 127], kernel
    for kernel in run_everywhere("pointwise", problem(y64, [x], code(("copy", 0))), operands(y64, [x])):
        assert y64.tolist() == [1, -1, 300, -300, 0, high, low, high], kernel


def test_the_longest_chain_and_all_inputs() -> None:
    rng = np.random.default_rng(5)
    inputs = list(rng.standard_normal((8, 600), dtype=np.float32))
    y = np.empty(600, np.float32)
    chain: list[tuple[str, int, int]] = [("add", 0, 1)]
    wanted = inputs[0] + inputs[1]
    for i in range(1, 24):
        chain.append(("sub" if i % 2 else "add", RESULT + i - 1, i % 8))
        wanted = wanted - inputs[i % 8] if i % 2 else wanted + inputs[i % 8]
    for kernel in run_everywhere("pointwise", problem(y, inputs, code(*chain)), operands(y, inputs), SIMD):
        assert np.array_equal(y, wanted), kernel


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("shape", [(900,), (40, 30), (7, 200)])
def test_in_place(shape: tuple[int, ...], length: int) -> None:
    rng = np.random.default_rng(4)
    a, y = rng.standard_normal((2, *shape), dtype=np.float32)
    b = rng.standard_normal(shape[-1:], dtype=np.float32)
    words = code(("add", 0, 1), ("mul", RESULT, 0), ("sub", RESULT + 1, 1))[: 4 * length]
    wanted = a + b if length == 1 else (a + b) * a - b
    p = problem(y, [a, b], words)
    for kernel in run_everywhere("pointwise", p, operands(y, [a, b]), SIMD, in_place=True):
        assert np.array_equal(y, wanted), kernel
        places = Step("pointwise", p, operands(y, [a, b]), in_place=True).places(kernel)
        assert places["y"] == places["x0"], kernel


BAD = {
    "a later result": {"code": code(("add", 0, RESULT))}, "a missing input": {"code": code(("add", 0, 3))},
    "a negative value": {"code": code(("add", 0, -1))}, "a value past the last": {"code": code(("add", 0, 40))},
    "an unknown operation": {"code": [len(OPS), 0, 0, 0]}, "no instruction": {"length": 0},
    "too many instructions": {"length": 25}, "a huge shape": {"shape": [1 << 62, 0, 0, 0, 0, 0]},
    "too many dimensions": {"ndim": 7}, "a negative dimension": {"shape": [-1, 0, 0, 0, 0, 0]},
    "an unknown type": {"in_dtype": [13] * 8}, "too wide a type": {"in_dtype": [1] * 8}, "int32": {"compute": 8},
    "too far": {"in_stride": padded([2], 48)}, "overlap": {"out_stride": padded([0], 6)}, "9 inputs": {"inputs": 9},
    "before the start": {"in_stride": padded([-1], 48)}, "overflow": {"out_stride": padded([(1 << 63) - 1], 6)},
}  # fmt: skip


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_refuses_what_is_wrong(change: dict[str, Any]) -> None:
    a, b, y = np.zeros((3, 16), np.float32)
    good = problem(y, [a, b], code(("add", 0, 1)))
    check("pointwise", good, operands(y, [a, b]))
    change = {k: padded(v, 96) if k == "code" else v for k, v in change.items()}
    with pytest.raises(ValueError):
        check("pointwise", good | change, operands(y, [a, b]))


def test_every_machine_has_the_generic_kernel() -> None:
    assert kernels("pointwise")[-1] == "pointwise_generic"
