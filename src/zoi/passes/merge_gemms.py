"""Products of one matrix with several constant ones become one product and slices of it: views, so only fewer steps."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    constant,
    data,
    float_attr,
    int_attr,
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


def merge_gemms(model: ir.Model) -> None:
    """Merges the zoi.Gemm nodes that read the same value and end alike."""
    groups: dict[tuple[object, ...], list[ir.Node]] = {}
    for node in model.graph:
        if not is_op(node, "Gemm", domain="zoi") or optional(node, 3) is not None or data(node.inputs[1]) is None:
            continue
        out = node.outputs[0]
        if out.is_graph_output() or not _reads_rows(out):
            continue
        act = (int_attr(node, "act"), float_attr(node, "act_p0"), float_attr(node, "act_p1"))
        groups.setdefault((node.inputs[0], *act), []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1:
            _merge(nodes)


def _reads_rows(value: ir.Value) -> bool:
    """Whether all readers walk strided rows without a copy."""
    return all(
        is_op(u.node, "Reshape", "Slice", "Transpose") or (u.node.domain == "zoi" and u.node.op_type != "Conv")
        for u in value.uses()
    )


def _merge(nodes: list[ir.Node]) -> None:
    first = nodes[0]
    columns, biases = [], []
    for node in nodes:
        weights, bias = data(node.inputs[1]), data(optional(node, 2))
        assert weights is not None
        columns.append(weights.T if int_attr(node, "trans_b") else weights)
        n = columns[-1].shape[1]
        biases.append(np.zeros(n, np.float32) if bias is None else np.broadcast_to(bias.reshape(-1), (n,)))
    w = constant(np.concatenate(columns, axis=1), f"{required(first, 1).name}.merged")
    b = constant(np.concatenate(biases), f"{name_of(first)}.bias.merged") if any(map(np.any, biases)) else None
    shape = [*shape_of(first.outputs[0])[:-1], shape_of(w)[1]]
    y = make(
        first, "Gemm", [required(first), w, b], shape, domain="zoi", suffix=".merged", trans_b=0,
        act=int_attr(first, "act"), act_p0=float_attr(first, "act_p0"), act_p1=float_attr(first, "act_p1"),
    )  # fmt: skip
    axis = rank_of(y) - 1
    start = 0
    for node in nodes:
        size = shape_of(node.outputs[0])[-1]
        replace(node.outputs[0], slice_of(first, y, axis, start, size, suffix=f".part{start}"))
        start += size
        if node is not first:
            remove(node)
    remove(first)
