"""What a model wants as input, and random inputs that suit it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zoi.errors import InputError
from zoi.plan import TensorSpec

Array = npt.NDArray[Any]
Feeds = dict[str, Array]
POOL_BYTES = 64 << 20


def model_inputs(
    path: str | os.PathLike[str], shapes: Mapping[str, Sequence[int]], fix: Mapping[str, Any]
) -> tuple[TensorSpec, ...]:
    """The inputs of an ONNX file, with open dimensions taken from `shapes`; those in `fix` are left out.

    Raises:
        InputError: A dimension is open and not given, or a name is no input of the model.
    """
    import onnx

    graph = onnx.load(os.fspath(path), load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    values = {v.name: v.type.tensor_type for v in graph.input if v.name not in constants}
    unknown = sorted((set(shapes) | set(fix)) - set(values))
    if unknown:
        raise InputError(f"model {path}: no input named {unknown}; its inputs are {sorted(values)}.")
    specs = []
    for name, tensor in values.items():
        if name in fix:
            continue
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
        shape = [d for d in shapes.get(name, dims) if isinstance(d, int) and d > 0]
        if len(shape) != len(dims):
            raise InputError(
                f"model {path}, input {name!r}: shape {dims} is open; give all of it, such as {name}=1,3,224,224."
            )
        specs.append(TensorSpec(name, str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)), tuple(shape)))
    return tuple(specs)


def random_feeds(
    specs: Sequence[TensorSpec], rng: np.random.Generator, ranges: Mapping[str, tuple[float, float]] | None = None
) -> Feeds:
    """One set of fresh inputs.

    Floats are standard normal. Integers are 0 to 9, small enough for most vocabularies; masks (by name, integer or
    float) are all ones; booleans are all true. `ranges` (name -> lowest, highest) overrules each of these.
    """
    return {spec.name: _random(spec, rng, (ranges or {}).get(spec.name)) for spec in specs}


def _random(spec: TensorSpec, rng: np.random.Generator, given: tuple[float, float] | None) -> Array:
    dtype = np.dtype(spec.dtype)
    if dtype.kind == "f":
        if given:
            return rng.uniform(*given, spec.shape).astype(dtype)
        return np.ones(spec.shape, dtype) if "mask" in spec.name else rng.standard_normal(spec.shape).astype(dtype)
    if given:
        return rng.integers(int(given[0]), int(given[1]), spec.shape, endpoint=True).astype(dtype)
    if dtype.kind == "b" or "mask" in spec.name:
        return np.ones(spec.shape, dtype)
    return rng.integers(0, 9, spec.shape, endpoint=True).astype(dtype)


def pool_size(specs: Sequence[TensorSpec], most: int = 16) -> int:
    """How many sets of inputs to rotate: as many as fit in `POOL_BYTES`, two to `most`."""
    one = sum(spec.nbytes for spec in specs) or 1
    return int(min(max(2, POOL_BYTES // one), most))
