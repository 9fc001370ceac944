"""Moves element-wise operators before the Reshape or Transpose that they follow, to where they can be fused.

Layout changes are views, but they stand between a convolution and its activation. An operator moves if what it moves to
is read by nothing else, and its other inputs are constants that can be laid out anew.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    Shape,
    constant,
    data,
    ints_attr,
    is_internal,
    is_op,
    make,
    name_of,
    producer,
    required,
    reshape,
    shape_of,
    substitute,
)
from zoi.passes.pointwise import is_elementwise
from zoi.passes.standard.shape import permute

TARGETS = ("Conv", "Gemm", "MatMul")


def hoist(model: ir.Model) -> None:
    """Moves until nothing does; in order, so that a chain moves one after the other."""
    for node in list(model.graph):
        while node is not None and node.graph is not None and is_elementwise(node):
            moved = _hoist(node)
            if moved is None:
                break
            node = moved


def _hoist(node: ir.Node) -> ir.Node | None:
    """The node's copy before the move that it followed, or None if it stays."""
    computed = [v for v in node.inputs if v is not None and data(v) is None]
    if not computed or any(v is not computed[0] for v in computed):
        return None
    x, out = computed[0], node.outputs[0]
    move = producer(x, "Reshape", "Transpose")
    readers = {use.node for use in x.uses()}
    if move is None or x.is_graph_output() or readers != {node} or shape_of(out) != shape_of(x):
        return None
    source = required(move)
    before = source.producer()
    fusable = is_op(before, *TARGETS, domain="zoi") or is_op(before, "ConvTranspose") or is_elementwise(before)
    passes_on = is_op(before, "Reshape", "Transpose")
    if not (fusable or passes_on) or not is_internal(source):
        return None
    inputs: list[ir.Value | None] = []
    for value in node.inputs:
        if value is None or value is x:
            inputs.append(source if value is x else None)
            continue
        other = _laid_out(value, move, source, x)
        if other is None:
            return None
        inputs.append(other)
    y = make(node, node.op_type, inputs, shape_of(source), dtype=out.dtype, domain=node.domain, suffix=".moved")
    moved = y.producer()
    assert moved is not None
    for attr in node.attributes.values():
        moved.attributes[attr.name] = attr
    if is_op(move, "Transpose"):
        substitute(node, permute(node, y, ints_attr(move, "perm") or [], suffix=""))
    else:
        substitute(node, reshape(node, y, shape_of(x), suffix=""))
    return moved


def _laid_out(value: ir.Value, move: ir.Node, source: ir.Value, x: ir.Value) -> ir.Value | None:
    """A constant that broadcast against what `move` gave, so that it does against what `move` takes."""
    array = data(value)
    if array is None:
        return None
    if array.size == 1:
        return constant(array.reshape(()), f"{value.name}.scalar")
    shape = shape_of(x)
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if is_op(move, "Transpose"):
        inverse = np.argsort(ints_attr(move, "perm") or [])
        return constant(np.ascontiguousarray(np.transpose(array, inverse)), f"{name_of(move)}.{value.name}")
    target = _spread(shape_of(source), shape, array.shape)
    return None if target is None else constant(array.reshape(target), f"{name_of(move)}.{value.name}")


def _spread(source: Shape, shape: Shape, sizes: Shape) -> Shape | None:
    """The sizes of a constant under a Reshape that only adds and drops dimensions of size 1, or None."""
    if [n for n in source if n != 1] != [n for n in shape if n != 1]:
        return None
    kept = iter([size for n, size in zip(shape, sizes, strict=True) if n != 1])
    return tuple(1 if n == 1 else next(kept) for n in source)
