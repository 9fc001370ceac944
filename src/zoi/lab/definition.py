"""What operators mean: axes, tensors, a float64 reference, a model of the error allowed, the work in FLOP and bytes.

A reference gives, beside each value, the root of the sum of squares of the terms that it sums (its spread). Roundings
of the terms add up like it, so a limit follows from the dtypes alone:
    |out - ref| <= u(out) |ref| + 3 u(between) spread + 4 u(f32) sqrt(length) spread
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zoi.device.cuda.arrays import BYTES
from zoi.kernels.registry import Workload
from zoi.lab.dtypes import UNIT, decode

Bits = Mapping[str, npt.NDArray[Any]]
Points = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tensor:
    """An operand: its shape and dtype under a workload, and whether the kernel reads or writes it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    output: bool = False
    spread: float = 1.0  # of its random values

    @property
    def bytes(self) -> int:
        """Bytes of all its elements."""
        return prod(self.shape) * BYTES[self.dtype]


@dataclass(frozen=True)
class Expected:
    """Exact values of some points of one output, and their spread."""

    values: F64
    spread: F64
    length: int  # of the sums
    between: str = "f32"  # what the terms are rounded to before they are summed
    drift: float = 0.0  # error of the sum itself, as a share of the spread, where it is not kept in f32


@dataclass(frozen=True)
class Definition:
    """An operator."""

    name: str
    axes: tuple[str, ...]
    tensors: Callable[[Workload], tuple[Tensor, ...]]
    points: Callable[[Workload], int]
    reference: Callable[[Workload, Bits, Points], dict[str, Expected]]
    select: Callable[[Workload, Bits, Points], dict[str, npt.NDArray[Any]]]
    flops: Callable[[Workload], float]

    def bytes(self, w: Workload) -> int:
        """The fewest bytes to move: every operand once."""
        return sum(tensor.bytes for tensor in self.tensors(w))


def limit(expected: Expected, dtype: str) -> F64:
    """The error allowed at each point."""
    summed = 4 * UNIT["f32"] * np.sqrt(expected.length) * expected.spread
    between = expected.drift * expected.spread
    if expected.between != "f32":
        between = between + 3 * UNIT[expected.between] * expected.spread
    smallest = {"bf16": 1e-38, "f16": 6e-8, "e4m3": 2.0**-10}.get(dtype, 1e-38)
    return np.asarray(1.01 * UNIT[dtype] * np.abs(expected.values) + summed + between + smallest, np.float64)


# ---- attention ----
def _attention_tensors(w: Workload) -> tuple[Tensor, ...]:
    q = (w["batch"], w["seq_q"], w["heads"], w["dim"])
    kv = (w["batch"], w["seq_k"], w["kv_heads"], w["dim"])
    return (
        Tensor("q", q, w.dtype),
        Tensor("k", kv, w.dtype),
        Tensor("v", kv, w.dtype),
        Tensor("o", q, w.dtype, output=True),
        Tensor("lse", (w["batch"], w["heads"], w["seq_q"]), "f32", output=True),
    )


def _attention_reference(w: Workload, bits: Bits, points: Points) -> dict[str, Expected]:
    batch, rest = np.divmod(points, w["heads"] * w["seq_q"])
    head, row = np.divmod(rest, w["seq_q"])
    values, spread = np.zeros((len(points), w["dim"])), np.zeros((len(points), w["dim"]))
    sums, softness = np.full(len(points), -np.inf), np.zeros(len(points))
    group = w["heads"] // w["kv_heads"]
    scale = w["dim"] ** -0.5
    for b, h in sorted(set(zip(batch.tolist(), (head // group).tolist(), strict=True))):
        at = np.flatnonzero((batch == b) & (head // group == h))
        q = decode(bits["q"][b, row[at], head[at]], w.dtype)
        k, v = decode(bits["k"][b, :, h], w.dtype), decode(bits["v"][b, :, h], w.dtype)
        s = scale * (q @ k.T)
        if w.option("causal"):
            s[np.arange(w["seq_k"]) > (row[at] + w["seq_k"] - w["seq_q"])[:, None]] = -np.inf
        top = s.max(axis=1, initial=-np.inf)
        p = np.exp(s - np.where(np.isfinite(top), top, 0.0)[:, None])
        total = p.sum(axis=1)
        p /= np.where(total > 0, total, 1.0)[:, None]
        values[at], spread[at] = p @ v, np.sqrt((p * p) @ (v * v))
        with np.errstate(divide="ignore"):
            sums[at] = np.where(total > 0, top + np.log(total), -np.inf)
        softness[at] = 1.0 + np.abs(np.where(total > 0, top, 0.0))
    return {
        "o": Expected(values, spread, w["seq_k"] + w["dim"], w.dtype),
        "lse": Expected(sums, softness, 64 * w["dim"]),
    }


def _attention_select(w: Workload, bits: Bits, points: Points) -> dict[str, npt.NDArray[Any]]:
    batch, rest = np.divmod(points, w["heads"] * w["seq_q"])
    head, row = np.divmod(rest, w["seq_q"])
    return {"o": bits["o"][batch, row, head], "lse": bits["lse"][batch, head, row]}


def _attention_flops(w: Workload) -> float:
    share = 0.5 if w.option("causal") else 1.0
    return 4.0 * w["batch"] * w["heads"] * w["seq_q"] * w["seq_k"] * w["dim"] * share


ATTENTION = Definition(
    "attention.forward",
    ("batch", "seq_q", "seq_k", "heads", "kv_heads", "dim"),
    _attention_tensors,
    lambda w: w["batch"] * w["heads"] * w["seq_q"],
    _attention_reference,
    _attention_select,
    _attention_flops,
)

# One query row a sequence, as when text is generated: the cost is reading keys and values.
DECODE = Definition(
    "attention.decode",
    ("batch", "seq_q", "seq_k", "heads", "kv_heads", "dim"),
    lambda w: tuple(tensor for tensor in _attention_tensors(w) if tensor.name != "lse"),
    lambda w: w["batch"] * w["heads"] * w["seq_q"],
    lambda w, bits, points: {"o": _attention_reference(w, bits, points)["o"]},
    lambda w, bits, points: {"o": bits["o"].reshape(-1, w["dim"])[points]},
    _attention_flops,
)


# ---- matrices ----
def _activation(name: str | None, x: F64) -> F64:
    if name == "relu":
        return np.maximum(x, 0)
    if name == "silu":
        return np.asarray(x / (1 + np.exp(-x)), np.float64)
    if name == "gelu":
        from math import erf

        return np.asarray(0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2))), np.float64)
    return x


def gemm_out(dtype: str) -> str:
    """The dtype of a product of matrices of this one."""
    return {"e4m3": "bf16", "i8": "i32"}.get(dtype, dtype)


def _gemm_tensors(w: Workload) -> tuple[Tensor, ...]:
    out = gemm_out(w.dtype)
    bias = (Tensor("bias", (w["n"],), out),) if w.option("bias") else ()
    return (
        Tensor("a", (w["m"], w["k"]), w.dtype),
        Tensor("b", (w["n"], w["k"]), w.dtype, spread=w["k"] ** -0.5 if w.dtype != "e4m3" else 1.0),
        *bias,
        Tensor("c", (w["m"], w["n"]), out, output=True),
    )


def _gemm_reference(w: Workload, bits: Bits, points: Points) -> dict[str, Expected]:
    a, b = decode(bits["a"][points], w.dtype), decode(bits["b"], w.dtype)
    scale = float(w.option("scale", 1.0))
    x = scale * (a @ b.T)
    if w.option("bias"):
        x = x + decode(bits["bias"], gemm_out(w.dtype))
    spread = abs(scale) * np.sqrt((a * a) @ (b * b).T)
    # Tensor cores cut sums of e4m3 products to about 13 bits every 32 steps, towards zero.
    drift = w["k"] / 32 * 2.0**-12 if w.dtype == "e4m3" else 0.0
    return {"c": Expected(_activation(w.option("activation"), x), 1.2 * spread, w["k"], drift=drift)}


GEMM = Definition(
    "gemm",
    ("m", "n", "k"),
    _gemm_tensors,
    lambda w: w["m"],
    _gemm_reference,
    lambda w, bits, points: {"c": bits["c"][points]},
    lambda w: 2.0 * w["m"] * w["n"] * w["k"],
)


# ---- rows ----
def _rows(
    name: str, second: str | None, wide: int, rule: Callable[[F64, F64 | None], tuple[F64, F64]], cost: float
) -> Definition:
    """An operator on each row: x [rows, wide * columns], perhaps a vector over the columns, y [rows, columns]."""

    def tensors(w: Workload) -> tuple[Tensor, ...]:
        extra = (Tensor(second, (w["columns"],), w.dtype),) if second else ()
        x = Tensor("x", (w["rows"], wide * w["columns"]), w.dtype)
        return (x, *extra, Tensor("y", (w["rows"], w["columns"]), w.dtype, output=True))

    def reference(w: Workload, bits: Bits, points: Points) -> dict[str, Expected]:
        vector = decode(bits[second], w.dtype) if second else None
        values, spread = rule(decode(bits["x"][points], w.dtype), vector)
        return {"y": Expected(values, spread, w["columns"])}

    return Definition(
        name,
        ("rows", "columns"),
        tensors,
        lambda w: w["rows"],
        reference,
        lambda w, bits, points: {"y": bits["y"][points]},
        lambda w: cost * w["rows"] * w["columns"],
    )


def _softmax(x: F64, _: F64 | None) -> tuple[F64, F64]:
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p, p * (1 + np.abs(x - x.max(axis=1, keepdims=True)))


def _rmsnorm(x: F64, weight: F64 | None) -> tuple[F64, F64]:
    assert weight is not None
    y = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * weight
    return y, np.abs(y)


def _swiglu(x: F64, _: F64 | None) -> tuple[F64, F64]:
    gate, up = np.split(x, 2, axis=1)
    y = gate / (1 + np.exp(-gate)) * up
    return y, np.abs(y) * (1 + np.abs(gate))


SOFTMAX = _rows("softmax", None, 1, _softmax, 5.0)
RMSNORM = _rows("rmsnorm", "weight", 1, _rmsnorm, 4.0)
SWIGLU = _rows("swiglu", None, 2, _swiglu, 6.0)

DEFINITIONS = {d.name: d for d in (ATTENTION, DECODE, GEMM, SOFTMAX, RMSNORM, SWIGLU)}
