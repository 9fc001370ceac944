"""Element-wise operators in terms of those that a pointwise kernel has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    constant,
    data,
    dtype_of,
    float_attr,
    int_attr,
    make,
    name_of,
    optional,
    rank_of,
    required,
    reshape,
    scalar,
    shape_of,
    substitute,
    text_attr,
)

SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def number(before: ir.Node, value: float, like: ir.Value, suffix: str) -> ir.Value:
    """A scalar constant of another value's type."""
    return constant(np.array(value, dtype_of(like).numpy()), f"{name_of(before)}.{suffix}")


def broadcast(before: ir.Node, op: str, values: Sequence[ir.Value], suffix: str = "") -> ir.Value:
    """An operator of several inputs whose result has the shape that they broadcast to."""
    return make(before, op, values, np.broadcast_shapes(*(shape_of(v) for v in values)), suffix=suffix)


def variadic(node: ir.Node) -> None:
    """Sum, Mean, Max and Min of any number of inputs, two at a time."""
    values = [v for v in node.inputs if v is not None]
    op = {"Sum": "Add", "Mean": "Add"}.get(node.op_type, node.op_type)
    if len(values) == 2 and op == node.op_type:
        return
    y = values[0]
    for i, value in enumerate(values[1:]):
        y = broadcast(node, op, [y, value], f".{i}")
    if node.op_type == "Mean":
        y = broadcast(node, "Mul", [y, number(node, 1 / len(values), y, "count")])
    substitute(node, y)


def clip(node: ir.Node) -> None:
    """Clip with its bounds as inputs; without one, a Max or Min; from 0, a Relu."""
    x, out = required(node), node.outputs[0]
    bounds: list[ir.Value | None] = []
    for index, name in ((1, "min"), (2, "max")):
        attr = node.attributes.get(name)
        value = optional(node, index)
        bounds.append(number(node, attr.as_float(), x, name) if attr is not None else value)
    if any(bound is not None and math.prod(shape_of(bound)) != 1 for bound in bounds):
        raise ValueError("bounds that are no scalars")
    low, high = bounds
    if scalar(low) is not None and dtype_of(x) == ir.DataType.FLOAT and scalar(low) <= -3.4e38:  # type: ignore[operator]
        low = None
    if scalar(high) is not None and dtype_of(x) == ir.DataType.FLOAT and scalar(high) >= 3.4e38:  # type: ignore[operator]
        high = None
    if low is None and high is None:
        substitute(node, x)
    elif high is None:
        op = ("Relu", [x]) if scalar(low) == 0 and dtype_of(x) == ir.DataType.FLOAT else ("Max", [x, low])
        substitute(node, make(node, op[0], op[1], shape_of(out), suffix=""))
    elif low is None:
        substitute(node, make(node, "Min", [x, high], shape_of(out), suffix=""))
    else:
        substitute(node, make(node, "Clip", [x, low, high], shape_of(out), suffix=""))


def power(node: ir.Node) -> None:
    """Pow by the usual constants; another exponent's type becomes the base's."""
    x, y, out = required(node), required(node, 1), node.outputs[0]
    exponent = scalar(y)
    floating = dtype_of(x) in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    same = shape_of(out) == shape_of(x)
    if exponent == 1 and same:
        substitute(node, x)
    elif exponent == 2 and same:
        substitute(node, make(node, "Mul", [x, x], shape_of(out), suffix=""))
    elif exponent == 0.5 and same and floating:
        substitute(node, make(node, "Sqrt", [x], shape_of(out), suffix=""))
    elif exponent == -1 and same and floating:
        substitute(node, make(node, "Reciprocal", [x], shape_of(out), suffix=""))
    elif exponent == -0.5 and same and floating:
        root = make(node, "Sqrt", [x], shape_of(out), suffix=".root")
        substitute(node, make(node, "Reciprocal", [root], shape_of(out), suffix=""))
    elif dtype_of(y) != dtype_of(x):
        if floating and data(y) is not None:
            cast = constant(data(y).astype(dtype_of(x).numpy()), f"{y.name}.cast")  # type: ignore[union-attr]
        elif floating:
            cast = make(node, "Cast", [y], shape_of(y), dtype=dtype_of(x), suffix=".exponent", to=dtype_of(x).value)
        else:
            return
        substitute(node, make(node, "Pow", [x, cast], shape_of(out), suffix=""))


def mod(node: ir.Node) -> None:
    """Mod with the sign of the dividend is an operator of its own."""
    if int_attr(node, "fmod"):
        substitute(node, make(node, "Fmod", list(node.inputs), shape_of(node.outputs[0]), domain="zoi", suffix=""))


def gelu(node: ir.Node) -> None:
    """Gelu by its two formulas."""
    op = "GeluTanh" if text_attr(node, "approximate", "none") == "tanh" else "Gelu"
    substitute(node, make(node, op, [required(node)], shape_of(node.outputs[0]), domain="zoi", suffix=""))


def swish(node: ir.Node) -> None:
    """Swish: x sigmoid(alpha x)."""
    x = required(node)
    alpha = float_attr(node, "alpha", 1.0)
    if alpha == 1:
        substitute(node, make(node, "Silu", [x], shape_of(x), domain="zoi", suffix=""))
        return
    inner = make(node, "Mul", [x, number(node, alpha, x, "alpha")], shape_of(x), suffix=".scaled")
    inner = make(node, "Sigmoid", [inner], shape_of(x), suffix=".sigmoid")
    substitute(node, make(node, "Mul", [x, inner], shape_of(x), suffix=""))


def selu(node: ir.Node) -> None:
    """Selu: gamma elu(x)."""
    x = required(node)
    elu = make(node, "Elu", [x], shape_of(x), suffix=".elu", alpha=float_attr(node, "alpha", SELU[0]))
    gamma = number(node, float_attr(node, "gamma", SELU[1]), x, "gamma")
    substitute(node, make(node, "Mul", [elu, gamma], shape_of(x), suffix=""))


def celu(node: ir.Node) -> None:
    """Celu: elu(x / alpha) alpha."""
    x, alpha = required(node), float_attr(node, "alpha", 1.0)
    inner = make(node, "Mul", [x, number(node, 1 / alpha, x, "inverse")], shape_of(x), suffix=".scaled")
    elu = make(node, "Elu", [inner], shape_of(x), suffix=".elu", alpha=1.0)
    substitute(node, make(node, "Mul", [elu, number(node, alpha, x, "alpha")], shape_of(x), suffix=""))


def prelu(node: ir.Node) -> None:
    """PRelu: LeakyRelu for one slope; else max(x, 0) + slope min(x, 0)."""
    x, slope = required(node), required(node, 1)
    if scalar(slope) is not None:
        substitute(node, make(node, "LeakyRelu", [x], shape_of(x), suffix="", alpha=float(scalar(slope) or 0)))
        return
    zero = number(node, 0, x, "zero")
    low = make(node, "Min", [x, zero], shape_of(x), suffix=".low")
    low = make(node, "Mul", [low, slope], shape_of(x), suffix=".scaled")
    high = make(node, "Relu", [x], shape_of(x), suffix=".high")
    substitute(node, make(node, "Add", [high, low], shape_of(x), suffix=""))


def thresholded(node: ir.Node) -> None:
    """ThresholdedRelu: x where x > alpha, else 0."""
    x = required(node)
    above = make(
        node, "Greater", [x, number(node, float_attr(node, "alpha", 1.0), x, "alpha")], shape_of(x),
        dtype=ir.DataType.BOOL, suffix=".above",
    )  # fmt: skip
    y = make(node, "Where", [above, x, number(node, 0, x, "zero")], shape_of(x), dtype=x.dtype, suffix="")
    substitute(node, y)


def shrink(node: ir.Node) -> None:
    """Shrink: x + bias below -lambd, x - bias above lambd, else 0."""
    x = required(node)
    lambd, bias = float_attr(node, "lambd", 0.5), float_attr(node, "bias", 0.0)
    shape = shape_of(x)
    zero = number(node, 0, x, "zero")
    above = make(node, "Greater", [x, number(node, lambd, x, "high")], shape, dtype=ir.DataType.BOOL, suffix=".above")
    below = make(node, "Less", [x, number(node, -lambd, x, "low")], shape, dtype=ir.DataType.BOOL, suffix=".below")
    down = make(node, "Sub", [x, number(node, bias, x, "bias")], shape, suffix=".down")
    up = make(node, "Add", [x, number(node, bias, x, "bias")], shape, suffix=".up")
    y = make(node, "Where", [above, down, zero], shape, dtype=x.dtype, suffix=".high")
    substitute(node, make(node, "Where", [below, up, y], shape, dtype=x.dtype, suffix=""))


def cast(node: ir.Node) -> None:
    """Cast; to the type that the value has, nothing."""
    x, out = required(node), node.outputs[0]
    if x.dtype == out.dtype:
        substitute(node, x)
    elif node.op_type == "CastLike":
        y = make(node, "Cast", [x], shape_of(out), dtype=out.dtype, suffix="", to=dtype_of(out).value)
        substitute(node, y)


def where(node: ir.Node) -> None:
    """Where with a constant condition that is the same everywhere."""
    chosen = scalar(node.inputs[0])
    if chosen is None:
        return
    value, out = required(node, 1 if chosen else 2), node.outputs[0]
    if shape_of(value) == shape_of(out):
        substitute(node, value)


def trilu(node: ir.Node) -> None:
    """Trilu: a choice by a constant triangle."""
    x = required(node)
    shift = data(optional(node, 1))
    if optional(node, 1) is not None and shift is None:
        return
    k = 0 if shift is None else int(np.ravel(shift)[0])
    rows, cols = shape_of(x)[-2:]
    ones = np.ones((rows, cols), bool)
    keep = np.triu(ones, k) if int_attr(node, "upper", 1) else np.tril(ones, k)
    mask = constant(keep, f"{name_of(node)}.triangle")
    substitute(node, make(node, "Where", [mask, x, number(node, 0, x, "zero")], shape_of(x), dtype=x.dtype, suffix=""))


def one_hot(node: ir.Node) -> None:
    """OneHot: a comparison with the numbers of the new axis."""
    indices, out = required(node), node.outputs[0]
    depth, values = data(optional(node, 1)), data(optional(node, 2))
    if depth is None or values is None:
        return
    axis = int_attr(node, "axis", -1) % rank_of(out)
    n = int(np.ravel(depth)[0])
    shape = shape_of(indices)
    column = reshape(node, indices, [*shape[:axis], 1, *shape[axis:]])
    numbers = np.arange(n).reshape([n if d == axis else 1 for d in range(rank_of(out))])
    numbers_value = constant(numbers.astype(dtype_of(indices).numpy()), f"{name_of(node)}.classes")
    negative = make(
        node, "Less", [column, number(node, 0, indices, "zero")], shape_of(column), dtype=ir.DataType.BOOL,
        suffix=".negative",
    )  # fmt: skip
    above = make(node, "Add", [column, number(node, n, indices, "depth")], shape_of(column), suffix=".above")
    wrapped = make(node, "Where", [negative, above, column], shape_of(column), dtype=indices.dtype, suffix=".wrapped")
    hit = make(node, "Equal", [wrapped, numbers_value], shape_of(out), dtype=ir.DataType.BOOL, suffix=".hit")
    off, on = (constant(v, f"{name_of(node)}.{k}") for v, k in zip(values, ("off", "on"), strict=True))
    substitute(node, make(node, "Where", [hit, on, off], shape_of(out), dtype=out.dtype, suffix=""))


def is_inf(node: ir.Node) -> None:
    """IsInf of one sign only: a comparison with that infinity."""
    x, out = required(node), node.outputs[0]
    positive, negative = int_attr(node, "detect_positive", 1), int_attr(node, "detect_negative", 1)
    if positive and negative:
        return
    sign = math.inf if positive else -math.inf
    limit = number(node, sign if positive or negative else math.nan, x, "limit")
    substitute(node, make(node, "Equal", [x, limit], shape_of(out), dtype=ir.DataType.BOOL, suffix=""))
