"""Removes what nothing reads, merges what is computed twice, and leaves a well-formed model."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from zoi.graph.edit import data, ints_attr, is_internal, is_op, producer, required, reshape, shape_of, substitute
from zoi.passes.infer import remove_dead
from zoi.passes.standard.shape import permute


def merge_moves(model: ir.Model) -> None:
    """Two Reshapes or two Transposes in a row become one; one that changes nothing goes."""
    for node in list(model.graph):
        if node.graph is None:
            continue
        if is_op(node, "Reshape"):
            before = producer(required(node), "Reshape")
            x = required(node) if before is None else required(before)
            if before is not None or shape_of(x) == shape_of(node.outputs[0]):
                if node.outputs[0].is_graph_output() and shape_of(x) == shape_of(node.outputs[0]):
                    continue
                substitute(node, reshape(node, x, shape_of(node.outputs[0]), suffix=""))
        elif is_op(node, "Transpose"):
            before = producer(required(node), "Transpose")
            if before is not None and is_internal(required(node)):
                first, second = ints_attr(before, "perm") or [], ints_attr(node, "perm") or []
                substitute(node, permute(node, required(before), [first[p] for p in second], suffix=""))


def share(model: ir.Model) -> None:
    """Nodes that compute the same from the same become one."""
    seen: dict[Any, ir.Node] = {}
    constants: dict[Any, ir.Value] = {}
    for node in list(model.graph):
        for i, value in enumerate(node.inputs):
            array = data(value)
            if value is not None and array is not None and array.size <= 64:
                first = constants.setdefault((array.dtype.str, array.shape, array.tobytes()), value)
                if first is not value:
                    node.replace_input_with(i, first)
        key = _key(node)
        first_node = seen.setdefault(key, node)
        if first_node is node or any(v.is_graph_output() for v in node.outputs):
            continue
        for old, new in zip(node.outputs, first_node.outputs, strict=True):
            old.replace_all_uses_with(new)
        model.graph.remove(node, safe=True)


def _key(node: ir.Node) -> Any:
    attributes = tuple(sorted((a.name, _frozen(a.value)) for a in node.attributes.values()))
    return (node.domain, node.op_type, tuple(node.inputs), len(node.outputs), attributes)


def _frozen(value: Any) -> str:
    return repr(value) if isinstance(value, (int, float, str, tuple, list)) else f"object {id(value)}"


def finish(model: ir.Model) -> None:
    """Lists the constants that are read as initializers, and gives every value a name of its own."""
    graph = model.graph
    remove_dead(graph)
    graph.initializers.clear()
    taken = {str(v.name) for v in (*graph.inputs, *graph.outputs)}
    fixed = {*graph.inputs, *graph.outputs}
    constants: dict[ir.Value, None] = {}
    for value in graph.outputs:
        if value.producer() is None and value.const_value is not None:
            constants[value] = None
    for node in graph:
        for read in node.inputs:
            if read is not None and read.const_value is not None:
                constants[read] = None
        for result in node.outputs:
            if result not in fixed:
                result.name = _unique(result.name or node.op_type, taken)
    for value in constants:
        if value not in fixed:
            value.name = _unique(value.name or "constant", taken)
        graph.initializers[value.name or ""] = value
    graph.opset_imports["zoi"] = 1


def _unique(name: str, taken: set[str]) -> str:
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}#{count}"
    taken.add(found)
    return found
