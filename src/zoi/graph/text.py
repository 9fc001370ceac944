"""A simplified graph as text: a line for each node, with its constants, activation and instructions spelled out."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from zoi.graph.edit import data, float_attr, int_attr, ints_attr
from zoi.graph.ops import Act, Op, Reduction

FEW = 8  # as many numbers of a constant are shown
# Written out by themselves, or beside what they belong to.
OWN_WORDS = frozenset({"act", "act_p0", "act_p1", "code", "imm", "compute", "op"})
INPUTS, IMMEDIATES = 8, 16  # operands below are inputs, then immediates, then results


def text(model: ir.Model) -> str:
    """The inputs, the outputs, and each node in order: result = operator(operands) attributes."""
    graph = model.graph
    lines = [f"model {graph.name or 'model'}"]
    lines += [f"input  {_typed(value)}" for value in graph.inputs]
    lines += [f"output {_typed(value)}" for value in graph.outputs]
    lines += [_node(node) for node in graph]
    return "\n".join(lines) + "\n"


def _type(value: ir.Value) -> str:
    kind = "?" if value.dtype is None else value.dtype.short_name()
    return f"{kind}[{','.join(str(d) for d in value.shape)}]" if value.shape is not None else f"{kind}[?]"


def _typed(value: ir.Value) -> str:
    return f"{value.name} {_type(value)}"


def _operand(value: ir.Value | None) -> str:
    if value is None:
        return "-"
    array = data(value)
    if array is None:
        return str(value.name)
    return str(array.tolist()) if array.size <= FEW and array.ndim <= 1 else _typed(value)


def _node(node: ir.Node) -> str:
    results = ", ".join(_typed(value) for value in node.outputs)
    kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    operands = ", ".join(_operand(value) for value in node.inputs)
    return f"  {results} = {kind}({operands}){''.join('  ' + word for word in _words(node))}"


def _words(node: ir.Node) -> Iterator[str]:
    if "code" in node.attributes:
        yield from _instructions(node)
    if "op" in node.attributes:
        yield Reduction(int_attr(node, "op")).name.lower()
    for attr in node.attributes.values():
        if attr.name not in OWN_WORDS:
            value = attr.value
            yield f"{attr.name}={list(value) if isinstance(value, (list, tuple)) else value}"
    act = int_attr(node, "act")
    if act:
        numbers = [p for p in (float_attr(node, "act_p0"), float_attr(node, "act_p1")) if p]
        yield f"{Act(act).name.lower()}{numbers or ''}"


def _instructions(node: ir.Node) -> Iterator[str]:
    """`add(x0, x1)  mul(#0, 0.5)`: x are the inputs, # the results before. Operands that an instruction lacks are 0."""
    code = ints_attr(node, "code") or []
    imm = node.attributes.get("imm")
    numbers = [] if imm is None else list(imm.as_floats())
    yield node.attributes["compute"].as_string()
    for at in range(0, len(code), 4):
        op, *operands = code[at : at + 4]
        yield f"{Op(op).name.lower()}({', '.join(_source(o, numbers) for o in operands[: ARITY.get(Op(op), 1)])})"


def _source(operand: int, numbers: list[float]) -> str:
    if operand < INPUTS:
        return f"x{operand}"
    return f"{numbers[operand - INPUTS]:g}" if operand < IMMEDIATES else f"#{operand - IMMEDIATES}"


ARITY = dict.fromkeys(
    (
        *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAX, Op.MIN, Op.POW, Op.MOD, Op.FMOD, Op.EQUAL, Op.LESS, Op.LESS_EQUAL),
        *(Op.GREATER, Op.GREATER_EQUAL, Op.AND, Op.OR, Op.XOR, Op.LEAKY_RELU, Op.ELU),
    ),
    2,
) | dict.fromkeys((Op.WHERE, Op.CLIP, Op.HARD_SIGMOID, Op.HARD_SWISH), 3)
