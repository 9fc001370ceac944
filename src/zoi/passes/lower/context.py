"""What the rules of the lowering share: values as tensors, where results are stored, and emitting steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from zoi import _native
from zoi.errors import UnsupportedOperator
from zoi.passes.lower.tensor import Shape, Tensor, channels_last, collapse, dense_strides

# In the order of kernels/kernel.h.
_DTYPE_NAMES = (
    *("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16"),
    *("uint16", "int32", "uint32", "int64", "uint64", "bool"),
)
DTYPES = {name: code for code, name in enumerate(_DTYPE_NAMES)}
MAX_DIMS = 6
Ref = tuple[int, int] | None


class Context:
    """The program being written, and the tensor of every value so far."""

    def __init__(self, graph: ir.Graph, program: _native.Program, model: str, states: Mapping[str, str]) -> None:
        self.graph = graph
        self.program = program
        self.model = model
        self.tensors: dict[ir.Value, Tensor] = {}
        self.outputs = set(graph.outputs)
        self.state_outputs = set(states)
        self._constants: dict[tuple[ir.Value, Shape], Tensor] = {}
        self._contiguous: dict[Tensor, Tensor] = {}
        self._destinations: dict[ir.Value, Tensor] = {}
        self._read_only: set[int] = set()
        self._sizes: dict[int, int] = {}
        self._names: dict[str, int] = {}

    # Values

    def constant(self, value: ir.Value | None) -> np.ndarray[Any, Any] | None:
        """The value's constant data, or None."""
        return None if value is None or value.const_value is None else value.const_value.numpy()

    def tensor(self, value: ir.Value) -> Tensor:
        """The value's tensor; constants enter the program when first asked for."""
        if value in self.tensors:
            return self.tensors[value]
        return self.constant_in_order(value, range(len(shape_of(value))))

    def constant_in_order(self, value: ir.Value, order: Sequence[int]) -> Tensor:
        """A constant stored with its dimensions in this order in memory."""
        key = (value, tuple(order))
        if key not in self._constants:
            data = self.constant(value)
            assert data is not None, f"value {value.name} has no tensor"
            stored = self.data(np.transpose(data, order), value.name or "")
            inverse = tuple(int(i) for i in np.argsort(order))
            self._constants[key] = stored.permute(inverse)
        return self._constants[key]

    def data(self, array: np.ndarray[Any, Any], name: str = "") -> Tensor:
        """New constant data, row-major."""
        shape = tuple(int(n) for n in array.shape)
        array = np.ascontiguousarray(array).reshape(shape)
        buffer = self.program.constant(array, name)
        self._read_only.add(buffer)
        return Tensor(buffer, 0, shape, dense_strides(shape), array.dtype)

    def input(self, value: ir.Value) -> None:
        """Declares a graph input."""
        shape, dtype = shape_of(value), dtype_of(value)
        tensor = self.allocate(shape, dtype, None, value.name or "")
        self.program.input(value.name or "", str(dtype), shape, tensor.buffer)
        self._read_only.add(tensor.buffer)
        self.tensors[value] = tensor

    def is_working(self, tensor: Tensor) -> bool:
        """Whether the tensor lies in memory that steps may write."""
        return tensor.buffer not in self._read_only

    def owns_buffer(self, tensor: Tensor) -> bool:
        """Whether the tensor is all of its buffer."""
        return self._sizes.get(tensor.buffer) == max(tensor.size, 1) * tensor.itemsize

    # Results

    def allocate(self, shape: Shape, dtype: Any, order: Sequence[int] | None = None, name: str = "") -> Tensor:
        """Fresh working memory without gaps."""
        dtype = np.dtype(dtype)
        size = max(math.prod(shape), 1) * dtype.itemsize
        buffer = self.program.buffer(size, name)
        self._sizes[buffer] = size
        return Tensor(buffer, 0, shape, dense_strides(shape, order), dtype)

    def result(
        self, value: ir.Value, order: Sequence[int] | None = None, inner: int | None = None, apart: bool = False
    ) -> Tensor:
        """Where a rule stores `value`: inside a later Concat's memory if possible, else new memory in `order`.

        Args:
            value: The result.
            order: The preferred order of dimensions in memory; None leaves it to what reads the value.
            inner: The dimension whose elements must be contiguous, if the kernel needs one.
            apart: Keep it out of a Concat's memory.
        """
        place = None if apart else self._destination(value, order)
        if place is not None and inner is not None and place.shape[inner] > 1 and place.strides[inner] != 1:
            place = None
        if place is None:
            wanted = self._wanted_order(value) if order is None else order
            if wanted is not None and inner is not None and (len(wanted) == 0 or wanted[-1] != inner):
                wanted = (*(d for d in range(len(shape_of(value))) if d != inner), inner)
            place = self.allocate(shape_of(value), dtype_of(value), wanted, value.name or "")
        self.tensors[value] = place
        return place

    def _wanted_order(self, value: ir.Value) -> Shape | None:
        """The order in which a transposing reader would find its result row-major."""
        if value in self.outputs:
            return None
        for node, _ in value.uses():
            if node.domain == "" and node.op_type == "Transpose":
                return tuple(node.attributes["perm"].as_ints())
        return None

    def _destination(self, value: ir.Value, order: Sequence[int] | None) -> Tensor | None:
        """The part of a Concat's result that this value fills, through reshapes and transposes."""
        if value in self._destinations:
            return self._destinations[value]
        place = None if value in self.outputs else self._find_destination(value, order)
        if place is not None:
            self._destinations[value] = place
        return place

    def _find_destination(self, value: ir.Value, order: Sequence[int] | None) -> Tensor | None:
        for node, index in value.uses():
            if node.domain != "":
                continue
            out = node.outputs[0]
            if node.op_type == "Concat":
                if sum(i is value for i in node.inputs) > 1 or any(self.constant(i) is not None for i in node.inputs):
                    continue
                whole = self._concat_memory(out, order)
                axis = int(node.attributes["axis"].as_int()) % len(whole.shape)
                before = sum(shape_of(i)[axis] for i in node.inputs[:index] if i is not None)
                return whole.slice(axis, before, shape_of(value)[axis])
            if node.op_type == "Reshape":
                inner = self._destination(out, None) if out not in self.outputs else None
                back = inner.reshape(shape_of(value)) if inner is not None else None
                if back is not None:
                    return back
            if node.op_type == "Transpose" and out not in self.outputs:
                perm = node.attributes["perm"].as_ints()
                through = tuple(list(perm).index(d) for d in order) if order is not None else None
                inner = self._destination(out, through)
                if inner is not None:
                    return inner.permute([int(i) for i in np.argsort(perm)])
        return None

    def _concat_memory(self, out: ir.Value, order: Sequence[int] | None) -> Tensor:
        """The memory of a Concat's result, made when its first part is stored."""
        if out not in self.tensors:
            place = self._destination(out, order)
            if place is None:
                order = None if out in self.outputs else order
                place = self.allocate(shape_of(out), dtype_of(out), order, out.name or "")
            self.tensors[out] = place
        return self.tensors[out]

    # Steps

    def step(self, name: str, family: str, problem: Mapping[str, Any], operands: Sequence[Ref]) -> None:
        """Appends a step under a unique name."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        self.program.step(name if count == 0 else f"{name}#{count}", family, problem, operands)

    def copy(self, name: str, source: Tensor, target: Tensor) -> None:
        """Stores source's elements in target."""
        order = target.order
        a, b = source.permute(order), target.permute(order)
        shape, (x, y) = collapse(a.shape, [a.strides, b.strides])
        if 0 in shape:
            return
        if len(shape) > MAX_DIMS:
            raise UnsupportedOperator(
                f"model {self.model!r}, node {name!r}: a copy over {len(shape)} dimensions that do not merge; "
                f"at most {MAX_DIMS} are supported. Merge neighbouring dimensions of the transposed tensor."
            )
        fields = {"elem": source.itemsize, "ndim": len(shape), "shape": shape, "x_stride": x, "y_stride": y}
        self.step(name, "copy", fields, [source.ref, target.ref])

    def fill(self, name: str, target: Tensor, value: Any) -> None:
        """Stores a scalar in every element of target."""
        shape, (y,) = collapse(target.permute(target.order).shape, [target.permute(target.order).strides])
        bits = int.from_bytes(np.asarray(value, target.dtype).tobytes(), "little", signed=False)
        bits -= (bits >> 63) << 64
        fields = {"elem": target.itemsize, "ndim": len(shape), "shape": shape, "y_stride": y, "bits": bits}
        self.step(name, "fill", fields, [target.ref])

    def in_order(self, name: str, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """The tensor without gaps in this order of dimensions, copied if it is not so."""
        wanted = dense_strides(tensor.shape, order)
        same = all(n == 1 or a == b for n, a, b in zip(tensor.shape, tensor.strides, wanted, strict=True))
        if same:
            return tensor
        key = Tensor(tensor.buffer, tensor.offset, tensor.shape + tuple(order), tensor.strides, tensor.dtype)
        if key not in self._contiguous:
            target = self.allocate(tensor.shape, tensor.dtype, order)
            self.copy(f"{name}.layout", tensor, target)
            self._contiguous[key] = target
        return self._contiguous[key]

    def contiguous(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor row-major without gaps, copied if it is not so."""
        return self.in_order(name, tensor, range(len(tensor.shape)))

    def image(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor with contiguous channels (dimension 1) and positive strides, copied if it is not so."""
        ok = (tensor.shape[1] == 1 or tensor.strides[1] == 1) and all(s > 0 for s in tensor.strides)
        return tensor if ok else self.in_order(name, tensor, channels_last(len(tensor.shape)))


def shape_of(value: ir.Value) -> Shape:
    """The static shape of a value."""
    assert value.shape is not None, f"value {value.name} has no shape"
    return tuple(int(d) for d in value.shape)  # type: ignore[arg-type]


def dtype_of(value: ir.Value) -> np.dtype[Any]:
    """The NumPy type of a value."""
    assert value.dtype is not None, f"value {value.name} has no dtype"
    return np.dtype(value.dtype.numpy())


def name_of(node: ir.Node) -> str:
    """The node's name, or its first result's."""
    return node.name or node.outputs[0].name or node.op_type


def int_attr(node: ir.Node, name: str, default: int = 0) -> int:
    """An integer attribute of the node, or the default."""
    attr = node.attributes.get(name)
    return default if attr is None else int(attr.as_int())


def float_attr(node: ir.Node, name: str, default: float = 0.0) -> float:
    """A real attribute of the node, or the default."""
    attr = node.attributes.get(name)
    return default if attr is None else float(attr.as_float())


def ints_attr(node: ir.Node, name: str, default: Sequence[int] = ()) -> list[int]:
    """A list of integers of the node, or the default."""
    attr = node.attributes.get(name)
    return list(default) if attr is None else [int(i) for i in attr.as_ints()]


def activation(node: ir.Node) -> dict[str, int | float]:
    """The activation fields that every family with an epilogue shares."""
    return {"act": int_attr(node, "act"), "act_p0": float_attr(node, "act_p0"), "act_p1": float_attr(node, "act_p1")}


def optional(node: ir.Node, index: int) -> ir.Value | None:
    """The node's input at `index`, or None where it is missing."""
    return node.inputs[index] if index < len(node.inputs) else None
