"""Folds constant scales and shifts into the weights and biases of convolutions and zoi.Gemm.

What follows a linear operator and varies by output channel only is part of it: batch normalisation, a bias, a division
by a constant. What comes before a convolution folds too, if there is no padding for it to miss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    Array,
    constant,
    data,
    int_attr,
    ints_attr,
    is_internal,
    is_op,
    name_of,
    optional,
    producer,
    rank_of,
    required,
    shape_of,
    substitute,
)
from zoi.passes.standard.linear import channel_vector


def fold_linear(model: ir.Model) -> None:
    """Folds until nothing more does; each fold hands its node on to the next one in order."""
    for node in list(model.graph):
        if node.graph is None:
            continue
        if is_op(node, "Mul", "Div", "Add", "Sub"):
            _fold_after(node)
        elif is_op(node, "Conv", domain="zoi"):
            _fold_before(node)


def constant_operand(node: ir.Node) -> tuple[ir.Value, Array] | None:
    """(computed operand, constant) of an element-wise node with one of each."""
    a, b = required(node), required(node, 1)
    if data(b) is not None and data(a) is None:
        return a, data(b)  # type: ignore[return-value]
    if data(a) is not None and data(b) is None and node.op_type in ("Mul", "Add"):
        return b, data(a)  # type: ignore[return-value]
    return None


def _fold_after(node: ir.Node) -> None:
    parts = constant_operand(node)
    if parts is None:
        return
    value, number = parts
    linear = value.producer()
    if linear is None or not is_internal(value):
        return
    if not is_op(linear, "Conv", "Gemm", domain="zoi") and not is_op(linear, "ConvTranspose"):
        return
    if optional(linear, 3) is not None or shape_of(value) != shape_of(node.outputs[0]):
        return
    axis = rank_of(value) - 1 if linear.op_type == "Gemm" else 1
    vector = channel_vector(number, shape_of(value), axis)
    weights = data(linear.inputs[1])
    bias = data(optional(linear, 2))
    if (
        vector is None
        or weights is None
        or weights.dtype != np.float32
        or (optional(linear, 2) is not None and bias is None)
    ):
        return
    if node.op_type in ("Add", "Sub"):
        shift = vector if node.op_type == "Add" else -vector
        _set_bias(linear, shift if bias is None else bias + shift)
    else:
        with np.errstate(all="ignore"):
            scale = vector if node.op_type == "Mul" else 1 / vector.astype(np.float64)
            scaled = _scale_outputs(linear, weights, scale).astype(np.float32)
        if not np.all(np.isfinite(scaled)):  # sums of infinite products are not infinite multiples of sums
            return
        _set_weights(linear, scaled)
        if bias is not None:
            _set_bias(linear, bias * scale)
    substitute(node, value)


def _scale_outputs(linear: ir.Node, weights: Array, scale: Array) -> Array:
    if linear.op_type == "Conv":
        return weights * scale.reshape(-1, *[1] * (weights.ndim - 1))
    if linear.op_type == "ConvTranspose":  # [inputs, outputs of a group, ...]
        groups = int_attr(linear, "group", 1)
        each = weights.reshape(groups, -1, *weights.shape[1:])
        return (each * scale.reshape(groups, 1, -1, *[1] * (weights.ndim - 2))).reshape(weights.shape)
    return weights * (scale[:, None] if int_attr(linear, "trans_b") else scale)


def _set_weights(linear: ir.Node, weights: Array) -> None:
    old = required(linear, 1)
    linear.replace_input_with(1, constant(weights.astype(np.float32), f"{old.name}.folded"))


def _set_bias(linear: ir.Node, bias: Array) -> None:
    if len(linear.inputs) < 3:
        linear.resize_inputs(3)
    linear.replace_input_with(2, constant(np.ascontiguousarray(bias, np.float32), f"{name_of(linear)}.bias"))


def _fold_before(conv: ir.Node) -> None:
    """A scale or shift of each input channel, whose operator nothing else reads."""
    folds: tuple[tuple[str, Callable[[ir.Node, Array], bool]], ...] = (
        ("Mul", scale_inputs),
        ("Add", _shift_inputs),
    )
    changed = True
    while changed:
        changed = False
        for op, fold in folds:
            node = producer(required(conv), op)
            if node is None or not is_internal(required(conv)):
                continue
            parts = constant_operand(node)
            if parts is None or shape_of(parts[0]) != shape_of(node.outputs[0]):
                continue
            vector = channel_vector(parts[1], shape_of(parts[0]), 1)
            if vector is not None and fold(conv, vector):
                conv.replace_input_with(0, parts[0])
                assert node.graph is not None
                node.graph.remove(node, safe=True)
                changed = True
                break


def _by_input(conv: ir.Node, weights: Array, vector: Array) -> Array:
    """The vector of input channels as something that multiplies the weights."""
    groups = int_attr(conv, "group", 1)
    each = vector.reshape(groups, 1, weights.shape[1], *[1] * (weights.ndim - 2))
    wide = np.broadcast_to(each, (groups, weights.shape[0] // groups, *each.shape[2:]))
    return wide.reshape(weights.shape[0], *each.shape[2:])


def scale_inputs(conv: ir.Node, vector: Array) -> bool:
    """Multiplies the weights of each input channel; False if they are not constant floats."""
    weights = data(conv.inputs[1])
    if weights is None or weights.dtype != np.float32:
        return False
    _set_weights(conv, weights * _by_input(conv, weights, vector))
    return True


def _shift_inputs(conv: ir.Node, vector: Array) -> bool:
    weights, bias = data(conv.inputs[1]), data(optional(conv, 2))
    if weights is None or weights.dtype != np.float32 or any(ints_attr(conv, "pads") or []):
        return False
    if optional(conv, 2) is not None and bias is None:
        return False
    shift = (weights * _by_input(conv, weights, vector)).reshape(weights.shape[0], -1).sum(axis=1, dtype=np.float64)
    _set_bias(conv, shift if bias is None else bias + shift)
    return True
