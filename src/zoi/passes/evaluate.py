"""Operators on constants: NumPy for the common ones, ONNX's reference implementation for the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from zoi.graph.edit import Array, data, float_attr, int_attr, ints_attr, optional

MAX_BYTES = 1 << 32
GROWTH_BYTES = 1 << 24
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
CASTS = frozenset(
    ir.DataType[n]
    for n in (
        "FLOAT",
        "DOUBLE",
        "FLOAT16",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "BOOL",
    )
)
Inputs = Sequence["Array | None"]


def evaluate(node: ir.Node, opset: int) -> list[Array] | None:
    """The node's results if all its inputs are constant and it is worth computing now, else None."""
    if node.op_type in RANDOM or node.domain != "" or not node.inputs:
        return None
    arrays = [data(v) for v in node.inputs]
    if any(a is None and v is not None for a, v in zip(arrays, node.inputs, strict=True)):
        return None
    if _grows(node, arrays):
        return None
    rule = NUMPY.get(node.op_type)
    if rule is not None:
        result = rule(node, arrays)
        if result is not None:
            return [result]
    return _reference(node, arrays, opset)


def result_size(node: ir.Node, arrays: Inputs) -> int | None:
    """How many elements an operator whose input states the size will have, or None for the others."""
    if node.op_type in ("ConstantOfShape", "Expand", "Tile") and node.inputs:
        sizes = [int(n) for n in np.ravel(arrays[0 if node.op_type == "ConstantOfShape" else 1])]  # type: ignore[arg-type]
        size = math.prod(max(n, 1) for n in sizes)
        return size * arrays[0].size if node.op_type == "Tile" and arrays[0] is not None else size
    if node.op_type == "Range" and len(arrays) == 3:
        start, limit, delta = (float(np.ravel(a)[0]) for a in arrays)  # type: ignore[arg-type]
        return max(math.ceil((limit - start) / delta), 0) if delta else None
    return None


def _grows(node: ir.Node, arrays: Inputs) -> bool:
    size = result_size(node, arrays)
    return size is not None and size * 4 > GROWTH_BYTES and node.op_type in ("Expand", "Tile")


def _reference(node: ir.Node, arrays: Inputs, opset: int) -> list[Array]:
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    proto = ir.to_proto(node)
    del proto.input[:], proto.output[:]
    proto.input.extend(names)
    proto.output.extend(f"y{i}" if v.name else "" for i, v in enumerate(node.outputs))
    given = {name: a for name, a in zip(names, arrays, strict=True) if a is not None}
    graph = onnx.helper.make_graph(
        [proto],
        "node",
        [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in given.items()
        ],
        [onnx.helper.make_empty_tensor_value_info(o) for o in proto.output if o],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    results = iter(ReferenceEvaluator(model).run(None, given))
    return [np.asarray(next(results)) if o else np.zeros(0) for o in proto.output]


def axes_of(node: ir.Node, arrays: Inputs) -> list[int] | None:
    """Axes from the attribute of early opsets or the input of later ones."""
    axes = ints_attr(node, "axes")
    if axes is None and len(arrays) > 1 and arrays[1] is not None:
        axes = [int(a) for a in np.ravel(arrays[1])]
    return axes


def squeezed(shape: Sequence[int], axes: Sequence[int] | None) -> list[int]:
    """The shape without these axes, or without all of size 1."""
    drop = {d for d, n in enumerate(shape) if n == 1} if axes is None else {a % len(shape) for a in axes}
    return [n for d, n in enumerate(shape) if d not in drop]


def unsqueezed(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """The shape with these axes of size 1, numbered as in the result."""
    rank = len(shape) + len(axes)
    at = {a % rank for a in axes}
    rest = iter(shape)
    return [1 if d in at else next(rest) for d in range(rank)]


def reshaped(shape: Sequence[int], target: Sequence[int], allow_zero: bool = False) -> list[int]:
    """ONNX Reshape's shape: 0 copies a dimension, -1 takes what remains."""
    result = [shape[i] if n == 0 and not allow_zero and i < len(shape) else int(n) for i, n in enumerate(target)]
    if -1 in result:
        rest = math.prod(n for n in result if n != -1)
        result[result.index(-1)] = math.prod(shape) // rest if rest else 0
    return result


def _broadcast(function: Callable[..., Array]) -> Callable[[ir.Node, Inputs], Array | None]:
    def rule(node: ir.Node, arrays: Inputs) -> Array | None:
        first = arrays[0]
        assert first is not None
        with np.errstate(all="ignore"):
            return np.asarray(function(*arrays))

    return rule


def _div(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b, a.dtype)
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.asarray(np.where(b == 0, 0, quotient * np.sign(a) * np.sign(b)), a.dtype)


def _cast(node: ir.Node, arrays: Inputs) -> Array | None:
    x, to = arrays[0], ir.DataType(int_attr(node, "to"))
    if x is None or x.dtype.kind not in "fiub" or to not in CASTS:
        return None
    with np.errstate(all="ignore"):
        return x.astype(to.numpy())


def _slice(node: ir.Node, arrays: Inputs) -> Array | None:
    x = arrays[0]
    assert x is not None
    starts, ends, axes, steps = slice_spec(node, arrays, x.ndim)
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 0 and end < -x.shape[axis]:
            index[axis] = slice(start, None, step)
        else:
            index[axis] = slice(start, end, step)
    return x[tuple(index)]


def slice_spec(node: ir.Node, arrays: Inputs, rank: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """(starts, ends, axes, steps) from attributes (opset 1) or inputs."""

    def given(index: int, name: str, default: list[int]) -> list[int]:
        attr = ints_attr(node, name)
        if attr is not None:
            return attr
        array = arrays[index] if index < len(arrays) else None
        return default if array is None else [int(i) for i in np.ravel(array)]

    starts = given(1, "starts", [])
    ends = given(2, "ends", [])
    axes = [a % rank for a in given(3, "axes", list(range(len(starts))))]
    return starts, ends, axes, given(4, "steps", [1] * len(starts))


def _gather(node: ir.Node, arrays: Inputs) -> Array | None:
    x, indices = arrays[0], arrays[1]
    assert x is not None and indices is not None
    return np.take(x, indices, axis=int_attr(node, "axis"))


def _concat(node: ir.Node, arrays: Inputs) -> Array | None:
    return np.concatenate([a for a in arrays if a is not None], axis=int_attr(node, "axis", 1))


def _constant_of_shape(node: ir.Node, arrays: Inputs) -> Array | None:
    attr = node.attributes.get("value")
    value = np.zeros(1, np.float32) if attr is None else attr.as_tensor().numpy()
    assert arrays[0] is not None
    return np.full([int(n) for n in arrays[0]], value.reshape(-1)[0], value.dtype)


def _reshape(node: ir.Node, arrays: Inputs) -> Array | None:
    x, target = arrays[0], arrays[1]
    assert x is not None and target is not None
    return x.reshape(reshaped(x.shape, [int(n) for n in target], bool(int_attr(node, "allowzero"))))


def _flatten(node: ir.Node, arrays: Inputs) -> Array | None:
    x = arrays[0]
    assert x is not None
    axis = int_attr(node, "axis", 1)
    return x.reshape(math.prod(x.shape[: axis + x.ndim if axis < 0 else axis]), -1)


def _transpose(node: ir.Node, arrays: Inputs) -> Array | None:
    assert arrays[0] is not None
    return np.transpose(arrays[0], ints_attr(node, "perm"))


def _expand(node: ir.Node, arrays: Inputs) -> Array | None:
    x, target = arrays[0], arrays[1]
    assert x is not None and target is not None
    shape = np.broadcast_shapes(x.shape, tuple(int(n) for n in target))
    return np.array(np.broadcast_to(x, shape))


def _squeeze(node: ir.Node, arrays: Inputs) -> Array | None:
    assert arrays[0] is not None
    return arrays[0].reshape(squeezed(arrays[0].shape, axes_of(node, arrays)))


def _unsqueeze(node: ir.Node, arrays: Inputs) -> Array | None:
    axes = axes_of(node, arrays)
    assert arrays[0] is not None and axes is not None
    return arrays[0].reshape(unsqueezed(arrays[0].shape, axes))


def _leaky_relu(node: ir.Node, arrays: Inputs) -> Array | None:
    x = arrays[0]
    assert x is not None
    return np.asarray(np.where(x < 0, x * np.asarray(float_attr(node, "alpha", 0.01), x.dtype), x), x.dtype)


def _same(node: ir.Node, arrays: Inputs) -> Array | None:
    return None if optional(node, 1) is not None and node.op_type == "Dropout" else arrays[0]


NUMPY: dict[str, Callable[[ir.Node, Inputs], Array | None]] = {
    "Abs": _broadcast(np.abs), "Add": _broadcast(np.add), "And": _broadcast(np.logical_and), "Cast": _cast,
    "Ceil": _broadcast(np.ceil), "Concat": _concat, "ConstantOfShape": _constant_of_shape, "Cos": _broadcast(np.cos),
    "Div": _broadcast(_div), "Equal": _broadcast(np.equal), "Exp": _broadcast(np.exp), "Expand": _expand,
    "Flatten": _flatten, "Floor": _broadcast(np.floor), "Gather": _gather, "Greater": _broadcast(np.greater),
    "GreaterOrEqual": _broadcast(np.greater_equal), "Identity": _same, "LeakyRelu": _leaky_relu,
    "Less": _broadcast(np.less), "LessOrEqual": _broadcast(np.less_equal), "Log": _broadcast(np.log),
    "Mul": _broadcast(np.multiply), "Neg": _broadcast(np.negative), "Not": _broadcast(np.logical_not),
    "Or": _broadcast(np.logical_or), "Reshape": _reshape, "Sin": _broadcast(np.sin), "Slice": _slice,
    "Sqrt": _broadcast(np.sqrt), "Squeeze": _squeeze, "Sub": _broadcast(np.subtract), "Transpose": _transpose,
    "Unsqueeze": _unsqueeze, "Where": _broadcast(np.where),
}  # fmt: skip
