"""Linear operators that read one value become one operator and slices of its result: views, so only fewer steps."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    Array,
    constant,
    data,
    float_attr,
    int_attr,
    ints_attr,
    is_op,
    make,
    name_of,
    optional,
    rank_of,
    remove,
    replace,
    required,
    shape_of,
)
from zoi.passes.standard.shape import slice_of

WINDOW = ("strides", "dilations", "pads")


def merge_linear(model: ir.Model) -> None:
    """Merges zoi.Gemm with zoi.Gemm and zoi.Conv with zoi.Conv, if they slide and end alike."""
    groups: dict[tuple[object, ...], list[ir.Node]] = {}
    for node in model.graph:
        if is_op(node, "Gemm", "Conv", domain="zoi") and _can_merge(node):
            groups.setdefault(_key(node), []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1:
            _merge(nodes)


def _can_merge(node: ir.Node) -> bool:
    if optional(node, 3) is not None or data(node.inputs[1]) is None or int_attr(node, "group", 1) != 1:
        return False
    bias = optional(node, 2)
    if bias is not None and data(bias) is None:
        return False
    out = node.outputs[0]
    return not out.is_graph_output() and all(
        is_op(u.node, "Reshape", "Slice", "Transpose") or u.node.domain == "zoi" for u in out.uses()
    )


def _key(node: ir.Node) -> tuple[object, ...]:
    act = (node.inputs[0], node.op_type, int_attr(node, "act"), float_attr(node, "act_p0"), float_attr(node, "act_p1"))
    if node.op_type == "Gemm":
        return (*act, int_attr(node, "trans_b"))
    window = tuple(tuple(ints_attr(node, name) or ()) for name in WINDOW)
    return (*act, window, shape_of(required(node, 1))[1:])


def _parts(node: ir.Node, axis: int) -> tuple[Array, Array]:
    """(weights, bias) of a node whose weights have their outputs along this axis."""
    weights, bias = data(node.inputs[1]), data(optional(node, 2))
    assert weights is not None
    n = weights.shape[axis]
    return weights, np.zeros(n, np.float32) if bias is None else np.broadcast_to(bias.reshape(-1), (n,))


def _merge(nodes: list[ir.Node]) -> None:
    first = nodes[0]
    outputs = 1 if first.op_type == "Gemm" and not int_attr(first, "trans_b") else 0
    weights, biases = zip(*(_parts(node, outputs) for node in nodes), strict=True)
    w = constant(np.concatenate(weights, axis=outputs), f"{required(first, 1).name}.merged")
    b = constant(np.concatenate(biases), f"{name_of(first)}.bias.merged") if any(map(np.any, biases)) else None
    axis = 1 if first.op_type == "Conv" else rank_of(first.outputs[0]) - 1
    shape = list(shape_of(first.outputs[0]))
    shape[axis] = shape_of(w)[outputs]
    window = {name: ints_attr(first, name) or [] for name in WINDOW if name in first.attributes}
    own = {**window, "group": 1} if first.op_type == "Conv" else {"trans_b": 1 - outputs}
    y = make(
        first, first.op_type, [required(first), w, b], shape, domain="zoi", suffix=".merged", attributes=own,
        act=int_attr(first, "act"), act_p0=float_attr(first, "act_p0"), act_p1=float_attr(first, "act_p1"),
    )  # fmt: skip
    start = 0
    for node in nodes:
        size = shape_of(node.outputs[0])[axis]
        replace(node.outputs[0], slice_of(first, y, axis, start, size, suffix=f".part{start}"))
        start += size
        if node is not first:
            remove(node)
    remove(first)
