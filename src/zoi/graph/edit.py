"""Reading and rewriting a graph: the few moves that every pass is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


def data(value: ir.Value | None) -> Array | None:
    """The value's constant data, or None."""
    return None if value is None or value.const_value is None else value.const_value.numpy()


def scalar(value: ir.Value | None) -> float | None:
    """The one number that a constant holds, in one element or in all, or None."""
    array = data(value)
    if array is None or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    flat = array.reshape(-1)
    return float(flat[0]) if flat.size == 1 or (flat.size <= 65536 and bool(np.all(flat == flat[0]))) else None


def is_scalar(value: ir.Value | None, expected: float, tolerance: float = 1e-4) -> bool:
    """Whether a constant is this number, but for rounding."""
    found = scalar(value)
    return found is not None and math.isclose(found, expected, rel_tol=tolerance, abs_tol=1e-12)


def shape_of(value: ir.Value) -> Shape:
    """The static shape of a value."""
    assert value.shape is not None, f"value {value.name} has no shape"
    return tuple(int(d) for d in value.shape)  # type: ignore[arg-type]


def rank_of(value: ir.Value) -> int:
    """The number of dimensions of a value."""
    assert value.shape is not None, f"value {value.name} has no shape"
    return len(value.shape)


def dtype_of(value: ir.Value) -> ir.DataType:
    """The element type of a value."""
    assert value.dtype is not None, f"value {value.name} has no type"
    return value.dtype


def name_of(node: ir.Node) -> str:
    """The node's name, or its first result's."""
    return node.name or (node.outputs[0].name if node.outputs else None) or node.op_type


def optional(node: ir.Node, index: int) -> ir.Value | None:
    """The node's input at `index`, or None where it is missing."""
    return node.inputs[index] if index < len(node.inputs) else None


def required(node: ir.Node, index: int = 0) -> ir.Value:
    """The node's input at `index`, which the operator must have."""
    value = node.inputs[index]
    assert value is not None
    return value


def int_attr(node: ir.Node, name: str, default: int = 0) -> int:
    """An integer attribute of the node, or the default."""
    attr = node.attributes.get(name)
    return default if attr is None else int(attr.as_int())


def float_attr(node: ir.Node, name: str, default: float = 0.0) -> float:
    """A real attribute of the node, or the default."""
    attr = node.attributes.get(name)
    return default if attr is None else float(attr.as_float())


def ints_attr(node: ir.Node, name: str) -> list[int] | None:
    """A list of integers of the node, or None."""
    attr = node.attributes.get(name)
    return None if attr is None else [int(i) for i in attr.as_ints()]


def text_attr(node: ir.Node, name: str, default: str = "") -> str:
    """A text attribute of the node, or the default."""
    attr = node.attributes.get(name)
    return default if attr is None else attr.as_string()


def set_attrs(node: ir.Node, **attributes: Any) -> None:
    """Sets attributes of a node."""
    for attr in _attributes(attributes):
        node.attributes[attr.name] = attr


def is_op(node: ir.Node | None, *kinds: str, domain: str = "") -> bool:
    """Whether the node is one of these operators of the domain."""
    return node is not None and node.domain == domain and node.op_type in kinds


def producer(value: ir.Value | None, *kinds: str, domain: str = "") -> ir.Node | None:
    """The node that computes the value, if it is one of these operators."""
    node = None if value is None else value.producer()
    return node if is_op(node, *kinds, domain=domain) else None


def reader(value: ir.Value) -> ir.Node | None:
    """The value's one reader, or None if it has none, several, or is an output of the graph."""
    if value.is_graph_output():
        return None
    uses = value.uses()
    if len(uses) != 1:
        nodes = {use.node for use in uses}
        return nodes.pop() if len(nodes) == 1 else None
    return next(iter(uses)).node


def is_internal(value: ir.Value) -> bool:
    """Whether exactly one input of one node reads the value, and nothing else sees it."""
    return len(value.uses()) == 1 and not value.is_graph_output()


def constant(array: Any, name: str) -> ir.Value:
    """A new constant."""
    array = np.asarray(array)
    tensor = ir.tensor(array, name=name)
    return ir.Value(name=name, const_value=tensor, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype))


def make(
    before: ir.Node,
    op: str,
    inputs: Sequence[ir.Value | None],
    shape: Sequence[int],
    /,
    dtype: ir.DataType | None = None,
    domain: str = "",
    suffix: str = "",
    outputs: Sequence[ir.Value] | None = None,
    attributes: Mapping[str, Any] | None = None,
    **more: Any,
) -> ir.Value:
    """Inserts a node before another one, under the latter's name, and returns its first result.

    Args:
        before: The node that it comes before; an error in the new one names this.
        op: The operator.
        inputs: Its inputs; None for one left out.
        shape: The shape of its first result.
        dtype: The type of its first result; by default that of its first input.
        domain: The domain of the operator.
        suffix: What is added to the name.
        outputs: Values to be its results instead of a new one.
        attributes: Its attributes, as Python numbers, texts and lists.
        **more: More of them, by name.
    """
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    base = name_of(before)
    node = ir.Node(domain, op, inputs, _attributes({**(attributes or {}), **more}), outputs=outputs, name=base + suffix)
    out = node.outputs[0]
    if outputs is None:
        out.name = f"{base}.{suffix or op}"
        first = inputs[0]
        out.type = first.type if dtype is None and first is not None else ir.TensorType(dtype or ir.DataType.FLOAT)
        out.shape = ir.Shape(tuple(int(n) for n in shape))
    graph = before.graph
    assert graph is not None
    graph.insert_before(before, node)
    return out


def replace(old: ir.Value, new: ir.Value) -> None:
    """Makes everything that reads `old` read `new`; an output of the graph keeps its name."""
    node = old.producer()
    if old.is_graph_output():
        assert node is not None
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        free = new.producer() is not None and not new.is_graph_output()
        if not free:  # an input, a constant or another output: it must stay itself
            new = make(node, "Reshape", [new, _shape_constant(new)], shape_of(new), suffix=".output")
        for i, value in enumerate(graph.outputs):
            if value is old:
                graph.outputs[i] = new
        old.name, new.name = f"{old.name}.old", old.name
    old.replace_all_uses_with(new)


def _shape_constant(value: ir.Value) -> ir.Value:
    return constant(np.array(shape_of(value), np.int64), f"{value.name}.shape")


def reshape(before: ir.Node, value: ir.Value, shape: Sequence[int], suffix: str = ".reshape") -> ir.Value:
    """The value under another shape: itself, new constant data, or the result of a Reshape."""
    shape = tuple(int(n) for n in shape)
    if shape_of(value) == shape:
        return value
    array = data(value)
    if array is not None:
        return constant(array.reshape(shape), f"{value.name}{suffix}")
    target = constant(np.array(shape, np.int64), f"{name_of(before)}{suffix}.shape")
    return make(before, "Reshape", [value, target], shape, suffix=suffix)


def remove(node: ir.Node) -> None:
    """Removes a node whose results nothing reads."""
    graph = node.graph
    assert graph is not None
    graph.remove(node, safe=True)


def remove_unread(node: ir.Node | None) -> None:
    """Removes the node if nothing reads its results, then those that only it read."""
    todo = [node] if node is not None else []
    while todo:
        node = todo.pop()
        if node.graph is None or any(v.uses() or v.is_graph_output() for v in node.outputs):
            continue
        before = [v.producer() for v in node.inputs if v is not None]
        remove(node)
        todo += [n for n in before if n is not None]


def substitute(node: ir.Node, new: ir.Value) -> None:
    """Replaces a node of one used result by a value, and removes what it leaves unread."""
    replace(node.outputs[0], new)
    remove_unread(node)


def _attributes(attributes: Mapping[str, Any]) -> list[ir.Attr]:
    result = []
    for name, value in attributes.items():
        if isinstance(value, (bool, int, np.integer)):
            result.append(ir.AttrInt64(name, int(value)))
        elif isinstance(value, float):
            result.append(ir.AttrFloat32(name, value))
        elif isinstance(value, str):
            result.append(ir.AttrString(name, value))
        elif any(isinstance(v, float) for v in value):
            result.append(ir.AttrFloat32s(name, [float(v) for v in value]))
        else:
            result.append(ir.AttrInt64s(name, [int(v) for v in value]))
    return result
