"""Recognises a softmax that exporters spell out: exp(x - max) / sum, over one axis."""

from __future__ import annotations

import onnx_ir as ir

from zoi.graph.edit import int_attr, ints_attr, is_op, make, producer, rank_of, required, shape_of, substitute
from zoi.passes.standard.rows import REDUCTIONS


def fuse_softmax(model: ir.Model) -> None:
    """Looks at every quotient, and at every product with an inverse."""
    for node in list(model.graph):
        if node.graph is not None and node.outputs[0].dtype == ir.DataType.FLOAT and is_op(node, "Div", "Mul"):
            _softmax(node)


def _softmax(node: ir.Node) -> None:
    for index in (0,) if is_op(node, "Div") else (0, 1):
        power, total = required(node, index), required(node, 1 - index)
        inverse = producer(total, "Reciprocal")
        if is_op(node, "Mul"):
            if inverse is None:
                continue
            total = required(inverse)
        exp = producer(power, "Exp")
        summed = _reduced(total, power, "ReduceSum")
        if exp is None or summed is None:
            continue
        difference = producer(required(exp), "Sub")
        if difference is None:  # without the maximum it is the same, but for overflow
            continue
        x = required(difference)
        if _reduced(required(difference, 1), x, "ReduceMax") != summed or shape_of(x) != shape_of(node.outputs[0]):
            continue
        y = make(node, "Softmax", [x], shape_of(x), domain="zoi", suffix="", axis=summed, log=0, scale=1.0)
        substitute(node, y)
        return


def _reduced(value: ir.Value, x: ir.Value, op: str) -> int | None:
    """The axis where the value is this reduction of x over it, laid out to broadcast against x; else None."""
    shape = shape_of(value)
    node = producer(value, "Reduce", domain="zoi")
    moved = producer(value, "Reshape")
    if node is None and moved is not None:
        node = producer(required(moved), "Reduce", domain="zoi")
    if node is None or required(node) is not x or int_attr(node, "op") != REDUCTIONS[op]:
        return None
    axes = [a % rank_of(x) for a in ints_attr(node, "axes") or []]
    if len(axes) != 1 or shape != tuple(1 if d == axes[0] else n for d, n in enumerate(shape_of(x))):
        return None
    return axes[0]
