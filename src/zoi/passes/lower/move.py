"""Data movement. Most of it becomes a view and emits nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from zoi.errors import UnsupportedOperator
from zoi.passes.lower.context import DTYPES, Context, int_attr, ints_attr, name_of, optional, shape_of
from zoi.passes.lower.tensor import Tensor, dense_strides, single_stride


def _only(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def reshape(ctx: Context, node: ir.Node) -> None:
    """Reshape to the static output shape."""
    out, x = node.outputs[0], ctx.tensor(_only(node))
    view = x.reshape(shape_of(out))
    if view is None:
        placed = ctx.result(out)
        target = placed.reshape(x.shape)
        if target is None:
            target = ctx.allocate(x.shape, x.dtype)
            placed = Tensor(target.buffer, 0, shape_of(out), dense_strides(shape_of(out)), x.dtype)
        ctx.copy(name_of(node), x, target)
        view = placed
    ctx.tensors[out] = view


def transpose(ctx: Context, node: ir.Node) -> None:
    """Transpose: a view."""
    x = ctx.tensor(_only(node))
    ctx.tensors[node.outputs[0]] = x.permute(ints_attr(node, "perm", range(len(x.shape))[::-1]))


def expand(ctx: Context, node: ir.Node) -> None:
    """Expand: a view with strides of 0."""
    ctx.tensors[node.outputs[0]] = ctx.tensor(_only(node)).expand(shape_of(node.outputs[0]))


def slice_(ctx: Context, node: ir.Node) -> None:
    """Slice with constant starts (non-negative), axes and steps: a view."""
    x = ctx.tensor(_only(node))
    out_shape = shape_of(node.outputs[0])
    starts = ctx.constant(node.inputs[1])
    axes, steps = ctx.constant(optional(node, 3)), ctx.constant(optional(node, 4))
    assert starts is not None
    where = range(starts.size) if axes is None else [int(a) % len(x.shape) for a in axes]
    for i, axis in enumerate(where):
        step = 1 if steps is None else int(steps[i])
        start, size = int(starts[i]), x.shape[axis]
        start = start + size if start < 0 else start
        start = min(max(start, 0), size if step > 0 else size - 1)
        x = x.slice(axis, start, out_shape[axis], step)
    ctx.tensors[node.outputs[0]] = x


def concat(ctx: Context, node: ir.Node) -> None:
    """Concat: copies only the parts that were not stored in place."""
    out, name = node.outputs[0], name_of(node)
    axis = int_attr(node, "axis") % len(shape_of(out))
    whole = ctx.tensors.get(out)
    if whole is None:
        parts = [ctx.tensor(v) for v in node.inputs if v is not None]
        largest = max(parts, key=lambda t: t.size)
        whole = ctx.result(out, None if out in ctx.outputs else largest.order)
    start = 0
    for value in node.inputs:
        assert value is not None
        part = ctx.tensor(value)
        target = whole.slice(axis, start, part.shape[axis])
        start += part.shape[axis]
        if not part.is_same_memory(target):
            ctx.copy(name, part, target)


def pad(ctx: Context, node: ir.Node) -> None:
    """Pad with a constant: fill, then copy. Negative pads crop."""
    out, name, x = node.outputs[0], name_of(node), ctx.tensor(_only(node))
    rank = len(x.shape)
    given = ctx.constant(node.inputs[1])
    assert given is not None
    axes_value = ctx.constant(optional(node, 3))
    axes = list(range(rank)) if axes_value is None else [int(a) % rank for a in axes_value]
    value = ctx.constant(optional(node, 2))
    y = ctx.result(out, None if out in ctx.outputs else x.order)
    inside = y
    for i, axis in enumerate(axes):
        begin, end = int(given[i]), int(given[i + len(axes)])
        x = x.slice(axis, max(-begin, 0), x.shape[axis] - max(-begin, 0) - max(-end, 0))
        inside = inside.slice(axis, max(begin, 0), x.shape[axis])
    ctx.fill(f"{name}.fill", y, 0 if value is None or value.size == 0 else value.reshape(()))
    ctx.copy(name, x, inside)


def gather(ctx: Context, node: ir.Node) -> None:
    """Gather. Constant indices that walk evenly are a view."""
    name, out = name_of(node), node.outputs[0]
    x_value, i_value = node.inputs[0], node.inputs[1]
    assert x_value is not None and i_value is not None
    x = ctx.tensor(x_value)
    axis = int_attr(node, "axis") % len(x.shape)
    known = ctx.constant(i_value)
    if known is not None and _even(known):
        flat = known.ravel() % x.shape[axis]
        step = int(flat[1] - flat[0]) if flat.size > 1 else 1
        view = x.slice(axis, int(flat[0]), flat.size, step) if flat.size > 1 or known.ndim else None
        if view is None:
            view = x.slice(axis, int(flat[0]), 1)
            keep = [d for d in range(len(x.shape)) if d != axis]
            ctx.tensors[out] = view.permute([axis, *keep])
            first = ctx.tensors[out]
            ctx.tensors[out] = Tensor(first.buffer, first.offset, first.shape[1:], first.strides[1:], first.dtype)
            return
        if known.ndim == 1:
            ctx.tensors[out] = view
            return
    indices = ctx.contiguous(name, ctx.tensor(i_value))
    if str(np.dtype(indices.dtype)) not in ("int32", "int64"):
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name!r}, operator Gather: indices of {indices.dtype}; int32 and int64 are."
        )
    outer = single_stride(x.shape[:axis], x.strides[:axis])
    inner = single_stride(x.shape[axis + 1 :], x.strides[axis + 1 :])
    if outer is None or inner is None or (inner[0] > 1 and inner[1] != 1):
        x = ctx.contiguous(name, x)
        outer = (math.prod(x.shape[:axis]), x.shape[axis] * x.strides[axis])
    count, width = indices.size, math.prod(x.shape[axis + 1 :])
    y = ctx.result(out)
    if not y.is_contiguous:
        y = ctx.tensors[out] = ctx.allocate(y.shape, y.dtype)
    fields = {
        "elem": x.itemsize, "outer": outer[0], "axis": x.shape[axis], "inner": width, "indices": count,
        "index_dtype": DTYPES[str(np.dtype(indices.dtype))], "x_outer": outer[1], "x_axis": x.strides[axis],
        "y_outer": count * width, "y_axis": width,
    }  # fmt: skip
    ctx.step(name, "gather", fields, [x.ref, indices.ref, y.ref])


def _even(indices: npt.NDArray[Any]) -> bool:
    flat = indices.ravel()
    return flat.size > 0 and (flat.size < 2 or bool(np.all(np.diff(flat) == flat[1] - flat[0]) and flat[1] != flat[0]))
