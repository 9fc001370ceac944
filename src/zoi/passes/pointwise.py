"""Fuses element-wise operators into zoi.Pointwise: one pass over memory for a whole chain.

A group grows from its result towards its inputs. It takes in an operator if only the group reads its result, if that
result has the group's shape, and if it is computed in the group's type; a conversion at the group's edge is free.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from zoi.graph.edit import (
    dtype_of,
    float_attr,
    is_op,
    make,
    required,
    scalar,
    shape_of,
    substitute,
)
from zoi.graph.ops import Op
from zoi.passes.elementwise import BINARY, PLAIN, WITH_NUMBERS

MAX_INPUTS, MAX_IMMEDIATES, MAX_CODE = 8, 8, 24
IMMEDIATE_BASE, RESULT_BASE = 8, 16
EXACT = 1 << 53
OWN = {
    "Gelu": Op.GELU, "GeluTanh": Op.GELU_TANH, "Silu": Op.SILU, "Fmod": Op.FMOD, "Rsqrt": Op.RSQRT, "Copy": Op.COPY,
    "Mish": Op.MISH, "HardSwish": Op.HARD_SWISH,
}  # fmt: skip
OTHERS = ("Clip", "Where", "Cast", "IsInf", "Mod")
CLASSES = {
    ir.DataType.FLOAT: "f32", ir.DataType.FLOAT16: "f32", ir.DataType.BFLOAT16: "f32", ir.DataType.DOUBLE: "f64",
}  # fmt: skip
NATURAL = {"f32": ir.DataType.FLOAT, "f64": ir.DataType.DOUBLE, "i64": ir.DataType.INT64}


def is_elementwise(node: ir.Node | None) -> bool:
    """Whether a node can become part of a zoi.Pointwise."""
    if node is None:
        return False
    if node.domain == "zoi":
        return node.op_type in OWN
    kind = node.op_type
    return node.domain == "" and (kind in PLAIN or kind in BINARY or kind in WITH_NUMBERS or kind in OTHERS)


def fuse_pointwise(model: ir.Model) -> None:
    """Replaces every element-wise node."""
    for node in reversed(list(model.graph)):
        if node.graph is not None and is_elementwise(node):
            _fuse(node)


def _class(node: ir.Node) -> str | None:
    """The type that a node computes in; None if it only sees truth values, which every type has."""
    out = dtype_of(node.outputs[0])
    if is_op(node, "Cast"):
        source = dtype_of(required(node))
        floats = [CLASSES[t] for t in (source, out) if t in CLASSES]
        if floats:
            return "f64" if "f64" in floats else "f32"
        return None if source == out == ir.DataType.BOOL else "i64"
    kinds = {dtype_of(v) for v in (*node.inputs, node.outputs[0]) if v is not None} - {ir.DataType.BOOL}
    if not kinds:
        return None
    floats = [CLASSES[kind] for kind in kinds if kind in CLASSES]
    return max(floats) if floats else "i64"


@dataclass
class _Group:
    """A chain being written: its inputs, immediates and instructions."""

    nodes: set[ir.Node]
    compute: str
    inputs: list[ir.Value] = field(default_factory=list)
    immediates: list[float] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    done: dict[ir.Value, int] = field(default_factory=dict)

    def fits(self) -> bool:
        length = len(self.code) // 4
        return len(self.inputs) <= MAX_INPUTS and len(self.immediates) <= MAX_IMMEDIATES and length <= MAX_CODE

    def emit(self, op: Op, a: int, b: int = 0, c: int = 0) -> int:
        self.code += [int(op), a, b, c]
        return RESULT_BASE + len(self.code) // 4 - 1

    def immediate(self, number: float) -> int:
        text = [repr(i) for i in self.immediates]
        if repr(number) not in text:
            self.immediates.append(number)
            text.append(repr(number))
        return IMMEDIATE_BASE + text.index(repr(number))

    def operand(self, value: ir.Value) -> int:
        if value in self.done:
            return self.done[value]
        number = scalar(value)
        node = value.producer()
        if number is not None and abs(number) >= EXACT and self.compute == "i64":
            number = None
        if number is not None:
            index = self.immediate(number)
        elif node is not None and node in self.nodes:
            index = self.instruction(node)
        else:
            self.inputs.append(value)
            index = len(self.inputs) - 1
        self.done[value] = index
        return index

    def instruction(self, node: ir.Node) -> int:
        kind = node.op_type
        args = [self.operand(v) for v in node.inputs if v is not None]
        if node.domain == "zoi":
            numbers = [self.immediate(float_attr(node, n)) for n in ("alpha", "beta") if n in node.attributes]
            return self.emit(OWN[kind], *args, *numbers)
        if kind in PLAIN:
            return self.emit(PLAIN[kind], args[0])
        if kind in BINARY:
            return self.emit(BINARY[kind], args[0], args[1])
        if kind == "HardSwish":
            return self.emit(Op.HARD_SWISH, args[0], self.immediate(1 / 6), self.immediate(0.5))
        if kind in WITH_NUMBERS:
            op, defaults = WITH_NUMBERS[kind]
            return self.emit(op, args[0], *(self.immediate(float_attr(node, n, d)) for n, d in defaults))
        if kind == "Cast":
            if dtype_of(node.outputs[0]) == ir.DataType.BOOL and dtype_of(required(node)) != ir.DataType.BOOL:
                return self.emit(Op.NOT, self.emit(Op.EQUAL, args[0], self.immediate(0.0)))
            return args[0]  # converted when loaded or stored
        simple = {"Clip": Op.CLIP, "Where": Op.WHERE, "IsInf": Op.IS_INF, "Mod": Op.MOD}
        return self.emit(simple[kind], *args)


def _write(nodes: set[ir.Node], root: ir.Node, compute: str) -> _Group:
    group = _Group(nodes, compute)
    index = group.instruction(root)
    if not group.code:
        group.emit(Op.COPY, index)
    return group


def _fuse(root: ir.Node) -> None:
    out = root.outputs[0]
    shape = shape_of(out)
    compute = _class(root)
    nodes = {root}
    refused: set[ir.Node] = set()
    growing = True
    while growing:
        growing = False
        for member in list(nodes):
            for value in member.inputs:
                node = None if value is None else value.producer()
                if value is None or node is None or node in nodes or node in refused or not is_elementwise(node):
                    continue
                if (
                    value.is_graph_output()
                    or shape_of(value) != shape
                    or any(u.node not in nodes for u in value.uses())
                ):
                    continue
                kind = _class(node)
                natural = dtype_of(value) == ir.DataType.BOOL or dtype_of(value) == NATURAL.get(compute or kind or "")
                if not natural or (kind is not None and compute is not None and kind != compute):
                    continue
                if not _write(nodes | {node}, root, compute or kind or "f32").fits():
                    refused.add(node)
                    continue
                nodes.add(node)
                compute = compute or kind
                growing = True
    group = _write(nodes, root, compute or "f32")
    if not group.fits():
        return
    numbers = {"imm": group.immediates} if group.immediates else {}
    y = make(
        root, "Pointwise", group.inputs, shape, dtype=dtype_of(out), domain="zoi", suffix="",
        attributes=numbers, code=group.code, compute=group.compute,
    )  # fmt: skip
    substitute(root, y)
