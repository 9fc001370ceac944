"""A drop-in for the call that most code makes: `onnxruntime.InferenceSession(path).run(None, feeds)`.

    from zoi import ort
    session = ort.InferenceSession("m.onnx")
    session.run(None, {"x": x})

A model with open dimensions is compiled when a shape is first seen; the plans last used are kept.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import zoi
from zoi.errors import InputError, UnsupportedOperator

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[Any]
Key = tuple[Any, ...]
MAX_PLANS = 16


class InvalidArgument(InputError):
    """A name, type or shape that the model does not have."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, its type as ONNX Runtime writes it, and its shape with names for open sizes."""

    name: str
    type: str
    shape: list[int | str | None]


class SessionOptions:
    """What code sets on ONNX Runtime's options. `intra_op_num_threads` is heeded; anything else is accepted."""

    intra_op_num_threads: int = 0


class InferenceSession:
    """Runs an ONNX model on arrays of any shape that it allows. Threads may share one; runs take turns."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **others: Any,
    ) -> None:
        """Reads the model's inputs and outputs, and compiles it if all shapes are known.

        Args:
            path_or_bytes: The ONNX file, or its bytes.
            sess_options: `intra_op_num_threads` is heeded: that many lanes, one where it is 0 or missing.
            providers: Accepted and not used: everything runs on the CPU.
            provider_options: Accepted and not used.
            others: Accepted and not used.
        """
        import onnx

        if not isinstance(path_or_bytes, bytes) and not Path(path_or_bytes).is_file():
            raise FileNotFoundError(f"load model from {os.fspath(path_or_bytes)} failed: the file does not exist.")
        self._model = path_or_bytes
        self._lanes = max(1, int(getattr(sess_options, "intra_op_num_threads", 0) or 0))
        if isinstance(path_or_bytes, bytes):
            graph = onnx.load_from_string(path_or_bytes).graph
        else:
            graph = onnx.load(os.fspath(path_or_bytes), load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        self._inputs = [_node_arg(value) for value in graph.input if value.name not in constants]
        self._outputs = [_node_arg(value) for value in graph.output]
        self._types = {i.name: _NUMPY_TYPES.get(i.type, i.type) for i in self._inputs}
        self._ranks = {i.name: i.shape for i in self._inputs}
        self._sessions: OrderedDict[Key, zoi.Session] = OrderedDict()
        self._fixed: tuple[str, ...] = ()
        self._lock = threading.Lock()
        if all(isinstance(dim, int) and dim > 0 for i in self._inputs for dim in i.shape):
            static = {i.name: np.empty(i.shape, self._types[i.name]) for i in self._inputs}  # type: ignore[arg-type]
            if not any(_can_fix(array) for array in static.values()):
                self._session(static)

    def get_inputs(self) -> list[NodeArg]:
        """The model's inputs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The model's outputs."""
        return list(self._outputs)

    def get_providers(self) -> list[str]:
        """Where it runs."""
        return ["CPUExecutionProvider"]

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Array]:
        """Runs the model; returns copies of the outputs named, or of all.

        Raises:
            InvalidArgument: An input or output has a name, type or shape that the model does not have.
            ValueError: An input is missing.
        """
        wanted = [output.name for output in self._outputs] if not output_names else list(output_names)
        self._check_outputs(wanted)
        arrays = self._check(input_feed)
        with self._lock:
            session = self._session(arrays)
            for name, view in session.inputs.items():
                view[...] = arrays[name]
            session.run()
            return [session.outputs[name].copy() for name in wanted]

    def _session(self, arrays: Mapping[str, Array]) -> zoi.Session:
        """The session for these shapes, compiled when they are first seen."""
        key: Key = tuple(arrays[name].item() if name in self._fixed else arrays[name].shape for name in self._types)
        session = self._sessions.get(key)
        if session is not None:
            self._sessions.move_to_end(key)
            return session
        try:
            plan = self._compile(arrays)
        except UnsupportedOperator:
            # A scalar that steers control flow, such as a sampling rate, is compiled in: its value joins the key.
            scalars = tuple(name for name, array in arrays.items() if _can_fix(array))
            if self._fixed or not scalars:
                raise
            self._fixed = scalars
            return self._session(arrays)
        self._sessions[key] = session = zoi.Session(plan, lanes=self._lanes)
        while len(self._sessions) > MAX_PLANS:
            self._sessions.popitem(last=False)
        return session

    def _compile(self, arrays: Mapping[str, Array]) -> zoi.Plan:
        shapes = {name: array.shape for name, array in arrays.items() if name not in self._fixed}
        return zoi.compile(self._model, shapes=shapes, fix={name: arrays[name] for name in self._fixed})

    def _check(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        missing = [name for name in self._types if name not in feeds]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feeds)}).")
        arrays = {}
        for name, value in feeds.items():
            if name not in self._types:
                raise InvalidArgument(f"Invalid input name: {name}. The inputs are {list(self._types)}.")
            array = np.asarray(value)
            if array.dtype != self._types[name]:
                raise InvalidArgument(
                    f"Unexpected input data type for {name}. Actual: {array.dtype}, expected: {self._types[name]}."
                )
            dims = self._ranks[name]
            if len(dims) != array.ndim:
                raise InvalidArgument(f"Invalid rank for input: {name}. Got: {array.ndim}, expected: {len(dims)}.")
            for axis, (dim, size) in enumerate(zip(dims, array.shape, strict=True)):
                if isinstance(dim, int) and dim > 0 and dim != size:
                    raise InvalidArgument(
                        f"Got invalid dimensions for input: {name}, index: {axis}. Got: {size}, expected: {dim}."
                    )
            arrays[name] = array
        return arrays

    def _check_outputs(self, names: Sequence[str]) -> None:
        known = [output.name for output in self._outputs]
        for name in names:
            if name not in known:
                raise InvalidArgument(f"Invalid output name: {name}. The outputs are {known}.")


def _can_fix(array: Array) -> bool:
    return array.ndim == 0 and array.dtype.kind in "biu"


def _node_arg(value: onnx.ValueInfoProto) -> NodeArg:
    from onnx import TensorProto

    tensor = value.type.tensor_type
    kind = TensorProto.DataType.Name(tensor.elem_type).lower()
    dims: list[int | str | None] = [
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None for d in tensor.shape.dim
    ]
    return NodeArg(value.name, f"tensor({kind})", dims)


_NUMPY_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
