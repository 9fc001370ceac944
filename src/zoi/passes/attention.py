"""Recognises attention: product, scale, mask, softmax and product become zoi.Attention, whose scores stay in cache."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    constant,
    data,
    dtype_of,
    float_attr,
    int_attr,
    is_internal,
    is_op,
    make,
    name_of,
    optional,
    producer,
    rank_of,
    remove_unread,
    replace,
    required,
    scalar,
    shape_of,
)
from zoi.passes.standard.shape import permute

# Scores replaced by a number below HIDDEN weigh nothing beside any other. As a mask that number is ABSORBING: whatever
# is added to it leaves it as it is, in double precision too, so that a row of only such scores still weighs all alike.
HIDDEN, ABSORBING = -1e4, -1e38


def fuse_attention(model: ir.Model) -> None:
    """Looks for attention at every zoi.MatMul."""
    for node in list(model.graph):
        if is_op(node, "MatMul", domain="zoi") and node.graph is not None:
            _attention(node)


def _attention(last: ir.Node) -> None:
    softmax = producer(required(last), "Softmax", domain="zoi")
    v, out = required(last, 1), last.outputs[0]
    if softmax is None or not is_internal(softmax.outputs[0]) or int_attr(softmax, "log"):
        return
    if float_attr(last, "alpha", 1.0) != 1.0 or optional(last, 2) is not None or rank_of(out) not in (3, 4):
        return
    scores = required(softmax)
    rank = rank_of(scores)
    if int_attr(softmax, "axis") % rank != rank - 1 or optional(softmax, 1) is not None or rank != rank_of(out):
        return
    if shape_of(scores)[:-1] != shape_of(out)[:-1] or rank_of(v) < 2:
        return
    found = _scores(softmax, scores)
    if found is None:
        return
    first, scale, mask = found
    q, kt = required(first), required(first, 1)
    if rank_of(q) < 2 or rank_of(kt) < 2:
        return
    q, q_scale = _unscaled(q)
    kt, k_scale = _unscaled(kt)
    scale *= float_attr(first, "alpha", 1.0) * k_scale * q_scale * float_attr(softmax, "scale", 1.0)
    k_rank = rank_of(kt)
    k = permute(last, kt, [*range(k_rank - 2), k_rank - 1, k_rank - 2], suffix=".keys")
    y = make(last, "Attention", [q, k, v, mask], shape_of(out), domain="zoi", suffix="", scale=float(scale))
    replace(out, y)
    remove_unread(last)


def _unscaled(value: ir.Value) -> tuple[ir.Value, float]:
    """(x, k) where only this attention reads the value, and it is k x."""
    node = producer(value, "Mul")
    if node is not None and is_internal(value):
        for index in (0, 1):
            number, x = scalar(required(node, 1 - index)), required(node, index)
            if number is not None and shape_of(x) == shape_of(value) and data(x) is None:
                return x, number
    inner = producer(value, "Transpose")
    if inner is not None and is_internal(value):
        x, number = _unscaled(required(inner))
        if x is not required(inner):
            perm = inner.attributes["perm"].as_ints()
            return permute(inner, x, list(perm), suffix=".unscaled"), number
    return value, 1.0


def _scores(softmax: ir.Node, value: ir.Value) -> tuple[ir.Node, float, ir.Value | None] | None:
    """(the product q k^T, the scale, the mask) of what a softmax reads."""
    shape = shape_of(value)
    scale = 1.0
    mask: ir.Value | None = None
    while is_internal(value):
        node = value.producer()
        if node is None:
            return None
        if is_op(node, "MatMul", domain="zoi"):
            if optional(node, 2) is not None or shape_of(value) != shape:
                return None
            return node, scale, mask
        scaled = _scaled_score(node, shape) if is_op(node, "Mul") else None
        if scaled is not None:
            value, factor = scaled
            scale *= factor
            continue
        masked = None
        if mask is None and scale == 1.0:
            masked = _masked_score(node, shape) if is_op(node, "Add") else _hidden_score(node, softmax, shape)
        if masked is None:
            return None
        value, mask = masked
    return None


def _scaled_score(node: ir.Node, shape: tuple[int, ...]) -> tuple[ir.Value, float] | None:
    for index in (0, 1):
        number, x = scalar(required(node, 1 - index)), required(node, index)
        if number is not None and shape_of(x) == shape:
            return x, number
    return None


def _leads_to_product(value: ir.Value) -> bool:
    for _ in range(4):
        node = value.producer()
        if node is None or not is_internal(value):
            return False
        if is_op(node, "MatMul", domain="zoi"):
            return True
        if not is_op(node, "Mul"):
            return False
        value = required(node, 1) if data(required(node)) is not None else required(node)
    return False


def _masked_score(node: ir.Node, shape: tuple[int, ...]) -> tuple[ir.Value, ir.Value] | None:
    for index in (0, 1):
        x, mask = required(node, index), required(node, 1 - index)
        if shape_of(x) == shape and _leads_to_product(x) and dtype_of(mask) == ir.DataType.FLOAT:
            return x, mask
    return None


def _hidden_score(node: ir.Node, softmax: ir.Node, shape: tuple[int, ...]) -> tuple[ir.Value, ir.Value] | None:
    """A choice between scores and a huge negative number, as a mask of zeros and that number."""
    if not is_op(node, "Where"):
        return None
    condition = required(node)
    for index in (1, 2):
        x, hidden = required(node, index), scalar(required(node, 3 - index))
        if hidden is None or hidden > HIDDEN or shape_of(x) != shape or not _leads_to_product(x):
            continue
        hidden = -math.inf if math.isinf(hidden) else ABSORBING
        numbers = [0.0, hidden] if index == 1 else [hidden, 0.0]
        values = [
            constant(np.array(n, np.float32), f"{name_of(node)}.{k}")
            for n, k in zip(numbers, ("then", "else"), strict=True)
        ]
        mask = make(
            softmax, "Where", [condition, *values], shape_of(condition), dtype=ir.DataType.FLOAT, suffix=".mask"
        )
        return x, mask
    return None
