"""Scale and shift of each channel after an activation: the scale goes into the convolutions that read the result.

act(conv) s + b, read by convolutions only, is (act(conv) + b / s) with their weights times s; zeros of padding stay
zeros. What remains is a sum with one number a channel, which the first convolution takes as a residual.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    Array,
    constant,
    data,
    dtype_of,
    int_attr,
    ints_attr,
    is_internal,
    is_op,
    name_of,
    optional,
    producer,
    rank_of,
    required,
    set_attrs,
    shape_of,
    substitute,
)
from zoi.passes.fold_linear import constant_operand, scale_inputs
from zoi.passes.standard.linear import channel_vector

SMALLEST = 1e-3


def push_scales(model: ir.Model) -> None:
    """Looks at every product with a constant, then at every sum with one."""
    for node in list(model.graph):
        if is_op(node, "Mul") and node.graph is not None:
            _push(node)
    for node in list(model.graph):
        if is_op(node, "Add") and node.graph is not None:
            _take_shift(node)


def _vector(node: ir.Node) -> tuple[ir.Value, Array] | None:
    """(image, number of each channel) of a product or sum with a constant."""
    found = constant_operand(node)
    if found is None or rank_of(found[0]) not in (3, 4) or dtype_of(found[0]) != ir.DataType.FLOAT:
        return None
    x, number = found
    vector = channel_vector(number, shape_of(x), 1)
    return None if vector is None or shape_of(x) != shape_of(node.outputs[0]) else (x, vector)


def _push(node: ir.Node) -> None:
    found = _vector(node)
    if found is None or np.any(np.abs(found[1]) < SMALLEST):
        return
    x, scale = found
    conv = producer(x, "Conv", domain="zoi")
    if conv is None or not is_internal(x) or not int_attr(conv, "act"):
        return
    result, shift = node.outputs[0], None
    use = next(iter(result.uses()), None)
    if use is not None and is_internal(result) and is_op(use.node, "Add"):
        shifted = _vector(use.node)
        if shifted is not None:
            shift, result = use.node, use.node.outputs[0]
    readers = [u for u in result.uses()]
    if result.is_graph_output() or not readers:
        return
    if not all(is_op(u.node, "Conv", domain="zoi") and u.idx == 0 and _is_plain(u.node) for u in readers):
        return
    for reader in readers:
        scale_inputs(reader.node, scale)
    if shift is not None:
        vector = _vector(shift)
        assert vector is not None
        column = (vector[1] / scale).astype(np.float32).reshape(-1, *[1] * (rank_of(x) - 2))
        at = 1 if required(shift) is vector[0] else 0
        shift.replace_input_with(at, constant(column, f"{name_of(shift)}.shift"))
    substitute(node, x)


def _is_plain(conv: ir.Node) -> bool:
    weights = data(conv.inputs[1])
    return weights is not None and weights.dtype == np.float32


def _is_product(conv: ir.Node) -> bool:
    """Whether the convolution is one matrix product, whose residual may repeat a row."""
    window = (*shape_of(required(conv, 1))[2:], *(ints_attr(conv, "strides") or []))
    return all(n == 1 for n in window) and not any(ints_attr(conv, "pads") or []) and int_attr(conv, "group", 1) == 1


def _take_shift(node: ir.Node) -> None:
    """A sum with one number a channel after an activation is the residual of the convolution before it."""
    found = _vector(node)
    conv = None if found is None else producer(found[0], "Conv", domain="zoi")
    if found is None or conv is None or not is_internal(found[0]) or optional(conv, 3) is not None:
        return
    channels = shape_of(found[0])[1]
    if not int_attr(conv, "act") or not _is_product(conv):
        return
    column = np.ascontiguousarray(found[1], np.float32).reshape(1, channels, *[1] * (rank_of(found[0]) - 2))
    if len(conv.inputs) < 4:
        conv.resize_inputs(4)
    conv.replace_input_with(3, constant(column, f"{name_of(node)}.shift"))
    set_attrs(conv, residual_after=1)
    substitute(node, found[0])
