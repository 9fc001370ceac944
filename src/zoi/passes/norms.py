"""Recognises layer normalisation that exporters spell out, and takes scale, shift and residual sum into zoi.Norm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    constant,
    data,
    dtype_of,
    int_attr,
    ints_attr,
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
    substitute,
)
from zoi.passes.standard.linear import channel_vector
from zoi.passes.standard.rows import REDUCTIONS, norm

MAX_EPSILON = 1.0


def fuse_norms(model: ir.Model) -> None:
    """Finds normalisations, then the scale and shift after them."""
    for node in list(model.graph):
        if node.graph is None or not node.outputs or node.outputs[0].dtype != ir.DataType.FLOAT:
            continue
        if is_op(node, "Div", "Mul") and (_layer_norm(node) or _rms_norm(node)):
            continue
        if is_op(node, "Mul", "Add"):
            _take_vector(node)


def fuse_norm_residuals(model: ir.Model) -> None:
    """A sum right before a zoi.Norm, if the operators that compute its terms did not take it."""
    for node in list(model.graph):
        if is_op(node, "Norm", domain="zoi") and optional(node, 1) is None:
            _take_residual(node)


def _through_reshape(value: ir.Value) -> ir.Value:
    """What was reduced, where a reduction without kept dimensions is followed by a Reshape that puts them back."""
    node = producer(value, "Reshape")
    if node is not None:
        before = required(node)
        if shape_of(value) == (*shape_of(before), 1):
            return before
    return value


def _mean_of(value: ir.Value) -> ir.Value | None:
    """The x of which the value is the mean over the last axis."""
    value = _through_reshape(value)
    factor = 1.0
    scaled = producer(value, "Mul")
    if scaled is not None and scalar(required(scaled, 1)) is not None:
        factor = scalar(required(scaled, 1)) or 0.0
        value = _through_reshape(required(scaled))
    node = producer(value, "Reduce", domain="zoi")
    if node is None:
        return None
    x = required(node)
    rank = rank_of(x)
    if [a % rank for a in ints_attr(node, "axes") or []] != [rank - 1]:
        return None
    op = int_attr(node, "op")
    wanted = 1.0 if op == REDUCTIONS["ReduceMean"] else 1 / shape_of(x)[-1] if op == REDUCTIONS["ReduceSum"] else None
    return x if wanted is not None and math.isclose(factor, wanted, rel_tol=1e-5) else None


def _is_square(value: ir.Value | None, x: ir.Value) -> bool:
    node = producer(value, "Mul")
    return node is not None and required(node) is x and required(node, 1) is x


def _root(value: ir.Value, divides: bool) -> tuple[ir.Value, float] | None:
    """(v, epsilon) where the value is sqrt(v + epsilon), or its reciprocal if it is multiplied with."""
    if divides:
        node = producer(value, "Sqrt")
    else:
        node = producer(value, "Rsqrt", domain="zoi")
        inverse = producer(value, "Reciprocal")
        if node is None and inverse is not None:
            node = producer(required(inverse), "Sqrt")
    summed = producer(required(node), "Add") if node is not None else None
    if summed is None:
        return None
    for a, b in ((0, 1), (1, 0)):
        epsilon = scalar(required(summed, b))
        if epsilon is not None and 0 <= epsilon <= MAX_EPSILON:
            return required(summed, a), epsilon
    return None


def _is_variance(value: ir.Value, x: ir.Value, mean: ir.Value, centred: ir.Value) -> bool:
    """mean((x - mean)^2), or mean(x^2) - mean^2 kept from falling below 0."""
    square = _mean_of(value)
    if square is not None:
        return _is_square(square, centred)
    value = _through_reshape(value)
    floor = producer(value, "Max", "Relu")
    if floor is not None:
        value = required(floor)
        if is_op(floor, "Max") and scalar(required(floor)) == 0:
            value = required(floor, 1)
    difference = producer(value, "Sub")
    if difference is None:
        return False
    square = _mean_of(required(difference))
    of_mean = producer(required(difference, 1), "Mul")
    if square is None or of_mean is None or not _is_square(square, x) or required(of_mean) is not required(of_mean, 1):
        return False
    return _mean_of(required(of_mean)) is x


def _layer_norm(node: ir.Node) -> bool:
    divides = is_op(node, "Div")
    for index in (0,) if divides else (0, 1):
        centred, other = required(node, index), required(node, 1 - index)
        difference = producer(centred, "Sub")
        if difference is None:
            continue
        x, mean = required(difference), required(difference, 1)
        if _mean_of(mean) is not x or shape_of(x) != shape_of(node.outputs[0]):
            continue
        scale = None
        scaled = None if divides else producer(other, "Mul")
        if scaled is not None:  # 1 / deviation times a scale first
            for a, b in ((0, 1), (1, 0)):
                if data(scaled.inputs[b]) is not None:
                    scale, other = required(scaled, b), required(scaled, a)
        root = _root(_through_reshape(other), divides)
        if root is None or not _is_variance(root[0], x, mean, centred):
            continue
        vector = None
        if scale is not None:
            array = channel_vector(data(scale), shape_of(x), rank_of(x) - 1)
            if array is None:
                continue
            vector = constant(np.ascontiguousarray(array), f"{scale.name}.row")
        substitute(node, norm(node, x, root[1], 0, vector, None, ""))
        return True
    return False


def _rms_norm(node: ir.Node) -> bool:
    divides = is_op(node, "Div")
    for index in (0,) if divides else (0, 1):
        x, other = required(node, index), required(node, 1 - index)
        root = _root(_through_reshape(other), divides)
        square = None if root is None else _mean_of(root[0])
        if (
            root is not None
            and square is not None
            and _is_square(square, x)
            and shape_of(x) == shape_of(node.outputs[0])
        ):
            substitute(node, norm(node, x, root[1], 1, None, None, ""))
            return True
    return False


def _take_vector(node: ir.Node) -> None:
    """A product or sum with one number a column after a zoi.Norm."""
    for index in (0, 1):
        x, other = required(node, index), required(node, 1 - index)
        before = producer(x, "Norm", domain="zoi")
        if before is None or not is_internal(x) or shape_of(x) != shape_of(node.outputs[0]) or optional(before, 3):
            continue
        vector = channel_vector(data(other), shape_of(x), rank_of(x) - 1)
        if vector is None or vector.dtype != np.float32:
            continue
        at = 2 if is_op(node, "Mul") else 3
        old = data(optional(before, 2))
        if at == 2 and optional(before, 2) is not None:
            if old is None:
                continue
            vector = vector * old
        if len(before.inputs) < at + 1:
            before.resize_inputs(at + 1)
        before.replace_input_with(at, constant(np.ascontiguousarray(vector), f"{name_of(node)}.row"))
        substitute(node, x)
        return


def _take_residual(node: ir.Node) -> None:
    x = required(node)
    summed = producer(x, "Add")
    if summed is None or dtype_of(x) != ir.DataType.FLOAT:
        return
    a, b = required(summed), required(summed, 1)
    if data(a) is not None:
        a, b = b, a
    if shape_of(a) != shape_of(x) or data(a) is not None:
        return
    if shape_of(b) != shape_of(x):
        return
    others = [u for u in x.uses() if u.node is not node]
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    if (others or x.is_graph_output()) and not _first_reader(graph, node, others):
        return
    y = node.outputs[0]
    inputs = [a, b, optional(node, 2), optional(node, 3)]
    new = make(
        node, "Norm", inputs, shape_of(y), domain="zoi", suffix="",
        outputs=_outputs(y, x, bool(others) or x.is_graph_output()),
        epsilon=float(node.attributes["epsilon"].as_float()), rms=int_attr(node, "rms"),
    )  # fmt: skip
    made = new.producer()
    assert made is not None
    for old, now in ((y, made.outputs[0]), *(((x, made.outputs[1]),) if len(made.outputs) > 1 else ())):
        replace(old, now)
    remove_unread(node)
    remove_unread(summed)


def _outputs(y: ir.Value, x: ir.Value, with_sum: bool) -> list[ir.Value]:
    wanted = [y, x] if with_sum else [y]
    return [ir.Value(name=f"{v.name}.norm", shape=v.shape, type=v.type) for v in wanted]


def _first_reader(graph: ir.Graph, node: ir.Node, others: Iterable[Any]) -> bool:
    """Whether the node comes before all other readers of what it reads."""
    order = {n: i for i, n in enumerate(graph)}
    return all(order[node] < order[u.node] for u in others)
