"""Gives every input a static shape, and makes constants of those that never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from zoi.errors import InputError
from zoi.graph.edit import constant


def bind_inputs(model: ir.Model, shapes: Mapping[str, Sequence[int]] | None, fix: Mapping[str, Any] | None) -> None:
    """Applies `shapes` and `fix` of `zoi.compile`.

    A dimension with a name is the same everywhere, so a shape given for one input also tells the others.
    """
    graph, shapes, fix = model.graph, dict(shapes or {}), dict(fix or {})
    name = graph.name or "model"
    for value in [v for v in graph.inputs if v.is_initializer()]:  # up to IR 3, weights were inputs as well
        graph.inputs.remove(value)
    inputs = {str(v.name): v for v in graph.inputs}
    unknown = [n for n in (*shapes, *fix) if n not in inputs]
    if unknown:
        raise InputError(
            f"model {name!r}: no input named {', '.join(map(repr, unknown))}; its inputs are {list(inputs)}."
        )
    both = [n for n in shapes if n in fix]
    if both:
        raise InputError(f"model {name!r}, input {both[0]!r}: given both a shape and a fixed value; give one.")
    sizes: dict[str, int] = {}
    for key, shape in shapes.items():
        _bind_shape(name, inputs[key], [int(n) for n in shape], sizes)
    for key, given in fix.items():
        _fix(name, graph, inputs[key], given, sizes)
    for value in graph.inputs:
        _finish_shape(name, value, sizes)


def _declared(value: ir.Value) -> list[int | str | None] | None:
    """Each dimension as a size, a name or None; None if even the rank is open."""
    if value.shape is None:
        return None
    dims: list[int | str | None] = []
    for dim in value.shape:
        size = dim if isinstance(dim, int) else dim.value
        dims.append(size if not isinstance(size, int) or size >= 0 else None)
    return dims


def _bind_shape(model: str, value: ir.Value, shape: list[int], sizes: dict[str, int]) -> None:
    declared = _declared(value)
    fits = declared is None or (
        len(declared) == len(shape)
        and all(not isinstance(d, int) or d == n for d, n in zip(declared, shape, strict=True))
    )
    if not fits or any(n < 0 for n in shape):
        raise InputError(f"model {model!r}, input {value.name!r}: shape {shape} given; the model has {declared}.")
    for dim, size in zip(declared or [], shape, strict=False):
        if isinstance(dim, str) and sizes.setdefault(dim, size) != size and dim.isidentifier():
            raise InputError(
                f"model {model!r}, input {value.name!r}: dimension {dim!r} is {size} here and {sizes[dim]} elsewhere; "
                "a name stands for one size."
            )
    value.shape = ir.Shape(shape)


def _fix(model: str, graph: ir.Graph, value: ir.Value, given: Any, sizes: dict[str, int]) -> None:
    if value.dtype is None:
        raise InputError(f"model {model!r}, input {value.name!r}: the model states no type, so it cannot be fixed.")
    array, dtype = np.asarray(given), np.dtype(value.dtype.numpy())
    found = array.astype(dtype) if array.dtype.kind in "biuf" else None
    lost = found is None or (dtype.kind != "f" and not np.array_equal(found, array))
    if found is None or lost:
        raise InputError(f"model {model!r}, input {value.name!r}: {given!r} does not fit type {dtype}.")
    declared = _declared(value)
    if declared is not None and found.size == 1 and len(declared) != found.ndim:
        found = found.reshape([1] * len(declared))
    _bind_shape(model, value, list(found.shape), sizes)
    graph.inputs.remove(value)
    value.replace_all_uses_with(constant(found, str(value.name)), replace_graph_outputs=True)


def _finish_shape(model: str, value: ir.Value, sizes: dict[str, int]) -> None:
    declared = _declared(value)
    if not isinstance(value.type, ir.TensorType):
        raise InputError(f"model {model!r}, input {value.name!r}: of type {value.type}; only tensors are supported.")
    if declared is not None:
        declared = [sizes.get(d, d) if isinstance(d, str) else d for d in declared]
    if declared is None or not all(isinstance(d, int) for d in declared):
        shown = "an open shape" if declared is None else f"shape {declared}"
        raise InputError(
            f"model {model!r}, input {value.name!r}: {shown}; a plan needs sizes: shapes={{{value.name!r}: (...)}}."
        )
    value.shape = ir.Shape([d for d in declared if isinstance(d, int)])
