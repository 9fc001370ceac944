"""Data movement in terms of Reshape, Transpose, Slice, Concat, Expand, Pad and Gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    Array,
    constant,
    data,
    dtype_of,
    int_attr,
    ints_attr,
    make,
    name_of,
    optional,
    rank_of,
    replace,
    required,
    reshape,
    scalar,
    shape_of,
    substitute,
    text_attr,
)
from zoi.passes.evaluate import slice_spec


def to_reshape(node: ir.Node) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze and an Expand that repeats nothing."""
    substitute(node, reshape(node, required(node), shape_of(node.outputs[0]), suffix=""))


def pass_through(node: ir.Node) -> None:
    """Identity, and Dropout as it is at inference (its mask is all true)."""
    training = data(optional(node, 2))
    if node.op_type == "Dropout" and optional(node, 2) is not None and (training is None or np.any(training)):
        return
    if len(node.outputs) > 1 and (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        mask = node.outputs[1]
        replace(mask, constant(np.ones(shape_of(mask), bool), f"{name_of(node)}.mask"))
    substitute(node, required(node))


def slice_of(
    before: ir.Node, x: ir.Value, axis: int, start: int, size: int, step: int = 1, suffix: str = ""
) -> ir.Value:
    """`size` elements of an axis, every `step`-th from `start`."""
    shape = list(shape_of(x))
    if start == 0 and size == shape[axis] and step == 1:
        return x
    shape[axis] = size
    end = start + size * step
    spec = [[start], [end if end >= 0 else -(1 << 62)], [axis], [step]]
    inputs = [
        constant(np.array(s, np.int64), f"{name_of(before)}.{n}") for s, n in zip(spec, SLICE_INPUTS, strict=True)
    ]
    return make(before, "Slice", [x, *inputs], shape, suffix=suffix)


SLICE_INPUTS = ("starts", "ends", "axes", "steps")


def slice_(node: ir.Node) -> None:
    """Slice with inputs, starts in range."""
    x, out = required(node), node.outputs[0]
    shape, result = shape_of(x), shape_of(out)
    starts, _, axes, steps = slice_spec(node, [data(v) for v in node.inputs], len(shape))
    begins = []
    for start, axis, step in zip(starts, axes, steps, strict=True):
        size = shape[axis]
        begin = start + size if start < 0 else start
        begins.append(min(max(begin, 0), size if step > 0 else size - 1))
    if result == shape and all(s == 1 for s in steps):
        substitute(node, x)
        return
    ends = []
    for b, a, s in zip(begins, axes, steps, strict=True):
        end = b + result[a] * s
        ends.append(end if end >= 0 else -(1 << 62))
    inputs = [
        constant(np.array(s, np.int64), f"{name_of(node)}.{n}")
        for s, n in zip((begins, ends, axes, steps), SLICE_INPUTS, strict=True)
    ]
    substitute(node, make(node, "Slice", [x, *inputs], result, suffix=""))


def split(node: ir.Node) -> None:
    """Split as one Slice a result."""
    x = required(node)
    axis = int_attr(node, "axis") % rank_of(x)
    start = 0
    for i, value in enumerate(node.outputs):
        if value.shape is None:  # unread, so nothing inferred it
            sizes = ints_attr(node, "split")
            given = data(optional(node, 1))
            count = int_attr(node, "num_outputs", len(node.outputs))
            whole = -(-shape_of(x)[axis] // count)
            size = int(sizes[i]) if sizes else int(given[i]) if given is not None else whole
            start += size
            continue
        size = shape_of(value)[axis]
        replace(value, slice_of(node, x, axis, start, size, suffix=f".{i}"))
        start += size
    _drop(node)


def _drop(node: ir.Node) -> None:
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def transpose(node: ir.Node) -> None:
    """Transpose with its permutation; one that moves only dimensions of size 1 is a Reshape."""
    x = required(node)
    rank = rank_of(x)
    perm = [p % rank for p in ints_attr(node, "perm") or range(rank)[::-1]]
    shape = shape_of(x)
    moved = [p for p in perm if shape[p] != 1]
    if moved == sorted(moved):
        substitute(node, reshape(node, x, [shape[p] for p in perm], suffix=""))
        return
    substitute(node, permute(node, x, perm, suffix=""))


def permute(before: ir.Node, x: ir.Value, perm: Sequence[int], suffix: str = ".transpose") -> ir.Value:
    """The value with its dimensions in another order."""
    if list(perm) == list(range(rank_of(x))):
        return x
    return make(before, "Transpose", [x], [shape_of(x)[p] for p in perm], suffix=suffix, perm=list(perm))


def expand(node: ir.Node) -> None:
    """Expand; a Reshape where nothing is repeated."""
    x, shape = required(node), shape_of(node.outputs[0])
    if math.prod(shape) == math.prod(shape_of(x)):
        to_reshape(node)
        return
    substitute(node, broadcast_to(node, x, shape, suffix=""))


def broadcast_to(before: ir.Node, x: ir.Value, shape: Sequence[int], suffix: str = ".expand") -> ir.Value:
    """The value repeated up to a shape."""
    if shape_of(x) == tuple(shape):
        return x
    target = constant(np.array(shape, np.int64), f"{name_of(before)}.shape")
    return make(before, "Expand", [x, target], shape, suffix=suffix)


def tile(node: ir.Node) -> None:
    """Tile: Expand over new dimensions, then Reshape."""
    x, out = required(node), shape_of(node.outputs[0])
    shape = shape_of(x)
    repeats = [o // n if n else 1 for o, n in zip(out, shape, strict=True)]
    if all(r == 1 or n == 1 for r, n in zip(repeats, shape, strict=True)):
        expand(node)
        return
    apart = [d for n in shape for d in (1, n)]
    wide = [d for r, n in zip(repeats, shape, strict=True) for d in (r, n)]
    x = broadcast_to(node, reshape(node, x, apart, suffix=".apart"), wide)
    substitute(node, reshape(node, x, out, suffix=""))


def concat(node: ir.Node) -> None:
    """Concat without empty parts."""
    out = node.outputs[0]
    axis = int_attr(node, "axis", 1) % rank_of(out)
    parts = [v for v in node.inputs if v is not None and shape_of(v)[axis] != 0]
    if len(parts) == 1:
        substitute(node, parts[0])
    elif parts:
        substitute(node, make(node, "Concat", parts, shape_of(out), suffix="", axis=axis))


PAD_MODES: dict[str, Literal["reflect", "edge", "wrap"]] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def pad(node: ir.Node) -> None:
    """Pad with inputs; the modes that copy pixels become one Gather an axis."""
    x, out = required(node), node.outputs[0]
    rank = rank_of(x)
    given = ints_attr(node, "pads") or [int(p) for p in np.ravel(_known(node, 1))]
    axes_given = data(optional(node, 3))
    axes = list(range(rank)) if axes_given is None else [int(a) % rank for a in np.ravel(axes_given)]
    begins, ends = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = given[i], given[i + len(axes)]
    if not any(begins) and not any(ends):
        substitute(node, x)
        return
    mode = text_attr(node, "mode", "constant")
    if mode in PAD_MODES:
        for axis in range(rank):
            if begins[axis] or ends[axis]:
                widths = (max(begins[axis], 0), max(ends[axis], 0))
                source: Array = np.pad(np.arange(shape_of(x)[axis]), widths, mode=PAD_MODES[mode])
                source = source[max(-begins[axis], 0) : source.size - max(-ends[axis], 0)]
                shape = [*shape_of(x)[:axis], source.size, *shape_of(x)[axis + 1 :]]
                index = constant(source.astype(np.int64), f"{name_of(node)}.index{axis}")
                x = make(node, "Gather", [x, index], shape, suffix=f".{axis}", axis=axis)
        substitute(node, x)
        return
    number = node.attributes.get("value")
    value = scalar(optional(node, 2)) if number is None else number.as_float()
    if optional(node, 2) is not None and data(optional(node, 2)) is None:
        return
    fill = constant(np.array(value or 0, dtype_of(x).numpy()), f"{name_of(node)}.value")
    pads = constant(np.array(begins + ends, np.int64), f"{name_of(node)}.pads")
    substitute(node, make(node, "Pad", [x, pads, fill], shape_of(out), suffix=""))


def _known(node: ir.Node, index: int) -> Array:
    array = data(node.inputs[index])
    assert array is not None
    return array


def depth_to_space(node: ir.Node) -> None:
    """DepthToSpace: channels are split, moved between rows and columns, and merged."""
    x = required(node)
    n, c, h, w = shape_of(x)
    b = int_attr(node, "blocksize", 1)
    if text_attr(node, "mode", "DCR") == "DCR":
        split_shape, perm = [n, b, b, c // (b * b), h, w], [0, 3, 4, 1, 5, 2]
    else:
        split_shape, perm = [n, c // (b * b), b, b, h, w], [0, 1, 4, 2, 5, 3]
    x = permute(node, reshape(node, x, split_shape, suffix=".split"), perm)
    substitute(node, reshape(node, x, shape_of(node.outputs[0]), suffix=""))


def space_to_depth(node: ir.Node) -> None:
    """SpaceToDepth, the other way round."""
    x = required(node)
    n, c, h, w = shape_of(x)
    b = int_attr(node, "blocksize", 1)
    perm = [0, 3, 5, 1, 2, 4] if text_attr(node, "mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    x = permute(node, reshape(node, x, [n, c, h // b, b, w // b, b], suffix=".split"), perm)
    substitute(node, reshape(node, x, shape_of(node.outputs[0]), suffix=""))
