"""Operators that ONNX itself defines by others: the definition takes their place, where no rule here does better."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir

from zoi.graph.edit import name_of, remove, replace
from zoi.passes.check import CANONICAL
from zoi.passes.elementwise import BINARY, PLAIN, WITH_NUMBERS
from zoi.passes.evaluate import RANDOM
from zoi.passes.standard import BY_OPSET, RULES

# Outputs that the rules leave out: with them read, the definition is taken.
ONE_OUTPUT = frozenset({"LayerNormalization"})


def is_native(node: ir.Node) -> bool:
    """Whether a rule or a kernel takes the operator as it is."""
    kind = node.op_type
    if kind in ONE_OUTPUT and any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
        return False
    known = kind in RULES or kind in BY_OPSET or kind in BINARY or kind in PLAIN or kind in WITH_NUMBERS
    return known or kind in CANONICAL[""] or kind in RANDOM


def expand(node: ir.Node, opset: int, types: list[onnx.TypeProto]) -> list[ir.Node] | None:
    """Puts the nodes of the operator's definition in its place and returns them, or None if it has none.

    Args:
        node: The node, which is gone afterwards.
        opset: The model's opset.
        types: The types of the node's inputs, an empty one for an input left out.
    """
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return None
    function = _definition(schema, node, opset, types)
    if function is None:
        return None
    graph = _as_graph(schema, function, node)
    formal = dict(zip([v.name for v in graph.inputs], node.inputs, strict=False))
    nodes = list(graph)
    for value in graph.inputs:
        actual = formal.get(value.name)
        if actual is not None:
            value.replace_all_uses_with(actual)
        else:
            for use in list(value.uses()):
                use.node.replace_input_with(use.idx, None)
    results = {v.name: v for v in graph.outputs}
    graph.outputs.clear()
    owner = node.graph
    assert owner is not None
    for inner in nodes:
        graph.remove(inner)
        inner.name = f"{name_of(node)}.{inner.op_type}"
        owner.insert_before(node, inner)
    for old, formal_name in zip(node.outputs, function.output, strict=False):
        if old.uses() or old.is_graph_output():
            replace(old, results[formal_name])
    remove(node)
    return nodes


def _definition(schema: Any, node: ir.Node, opset: int, types: list[onnx.TypeProto]) -> onnx.FunctionProto | None:
    found: bytes | None = None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if versions:
            found = schema.get_function_with_opset_version(max(versions))
    elif schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        if versions:
            content, given = ir.to_proto(node).SerializeToString(), [t.SerializeToString() for t in types]
            found = schema.get_context_dependent_function_with_opset_version(max(versions), content, given)
    if not found:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(found)
    return function


def _as_graph(schema: Any, function: onnx.FunctionProto, node: ir.Node) -> ir.Graph:
    """The definition as a graph, with the node's attributes or their defaults where it refers to them."""
    attributes: dict[str, onnx.AttributeProto] = {n: a.default_value for n, a in schema.attributes.items()}
    attributes |= {a.name: a for a in ir.to_proto(node).attribute}
    proto = onnx.GraphProto(name=node.op_type)
    proto.input.extend(onnx.ValueInfoProto(name=n) for n in function.input)
    computed = {name for inner in function.node for name in inner.output}
    proto.output.extend(onnx.ValueInfoProto(name=n) for n in function.output if n in computed)
    for inner in function.node:
        proto.node.append(_bound(inner, attributes))
    return ir.serde.deserialize_graph(proto)


def _bound(node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto]) -> onnx.NodeProto:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound = onnx.AttributeProto()
            bound.CopyFrom(attribute)
            if attribute.type == onnx.AttributeProto.GRAPH:
                inner: list[Any] = [_bound(n, attributes) for n in attribute.g.node]
                del bound.g.node[:]
                bound.g.node.extend(inner)
            result.attribute.append(bound)
            continue
        actual = attributes.get(attribute.ref_attr_name)
        if actual is not None and actual.type != onnx.AttributeProto.UNDEFINED:
            bound = onnx.AttributeProto()
            bound.CopyFrom(actual)
            bound.name = attribute.name
            result.attribute.append(bound)
    return result
