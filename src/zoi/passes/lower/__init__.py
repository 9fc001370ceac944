"""The one crossing down: a canonical graph becomes a flat list of problems in a `_native.Program`.

Every rule reads its inputs as strided tensors (`tensor.py`), asks the context where its result goes, and emits the
steps of one node. The canonical operators are those listed in `zoi.passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from zoi import _native
from zoi.errors import InputError, UnsupportedOperator
from zoi.passes.lower import image, matrix, move, pointwise, recurrent, rows
from zoi.passes.lower.context import Context, dtype_of, name_of, shape_of
from zoi.passes.lower.tensor import Tensor

RULES: dict[tuple[str, str], Callable[[Context, ir.Node], None]] = {
    ("zoi", "Conv"): image.conv,
    ("", "ConvTranspose"): image.conv_transpose,
    ("", "MaxPool"): image.pool,
    ("", "AveragePool"): image.pool,
    ("", "Resize"): image.resize,
    ("zoi", "Gemm"): matrix.gemm,
    ("zoi", "MatMul"): matrix.matmul,
    ("zoi", "Attention"): matrix.attention,
    ("zoi", "Pointwise"): pointwise.pointwise,
    ("zoi", "Softmax"): rows.softmax,
    ("zoi", "Norm"): rows.norm,
    ("zoi", "Reduce"): rows.reduce,
    ("", "LSTM"): recurrent.recurrent,
    ("", "GRU"): recurrent.recurrent,
    ("", "RNN"): recurrent.recurrent,
    ("", "Reshape"): move.reshape,
    ("", "Transpose"): move.transpose,
    ("", "Expand"): move.expand,
    ("", "Slice"): move.slice_,
    ("", "Concat"): move.concat,
    ("", "Pad"): move.pad,
    ("", "Gather"): move.gather,
}


def lower(model: ir.Model, state: Mapping[str, str] | None = None) -> _native.Program:
    """Writes the program of a canonical model.

    Args:
        model: As `zoi.passes.simplify` returns it: every shape static, every operator canonical.
        state: Output name -> input name of what one run hands to the next.

    Raises:
        UnsupportedOperator: A node has no rule, or a form that no kernel takes.
        InputError: A state names no input or output, or two of different shape or type.
    """
    graph = model.graph
    name = graph.name or "model"
    state = dict(state or {})
    _check_states(graph, state)
    program = _native.Program(name)
    ctx = Context(graph, program, name, state)
    for value in graph.inputs:
        ctx.input(value)
    for node in graph:
        rule = RULES.get((node.domain, node.op_type))
        if rule is None:
            raise UnsupportedOperator(
                f"model {name!r}, node {name_of(node)!r}: operator {node.domain or 'ai.onnx'}.{node.op_type} has no "
                f"kernel; supported: {sorted(op for _, op in RULES)}."
            )
        rule(ctx, node)
    used: set[int] = set()
    for value in graph.outputs:
        tensor = _output(ctx, value, used)
        used.add(tensor.buffer)
        program.output(value.name or "", str(dtype_of(value)), shape_of(value), *tensor.ref)
    for out, into in state.items():
        program.state(into, out)
    return program


def _output(ctx: Context, value: ir.Value, used: set[int]) -> Tensor:
    """An output's tensor: row-major in working memory, a state's in memory of its own."""
    tensor = ctx.tensor(value)
    shared = tensor.buffer in used or not ctx.owns_buffer(tensor)
    if tensor.is_contiguous and ctx.is_working(tensor) and not (shared and value.name in ctx.state_outputs):
        return tensor
    target = ctx.allocate(tensor.shape, tensor.dtype, None, value.name or "")
    ctx.copy(f"{value.name}.output", tensor, target)
    return target


def _check_states(graph: ir.Graph, state: Mapping[str, str]) -> None:
    inputs = {v.name: v for v in graph.inputs}
    outputs = {v.name: v for v in graph.outputs}
    for out, into in state.items():
        if out not in outputs or into not in inputs:
            raise InputError(
                f"model {graph.name!r}: state {out!r} -> {into!r}: outputs are {sorted(map(str, outputs))}, inputs "
                f"{sorted(map(str, inputs))}. State maps an output to the input it feeds."
            )
        a, b = outputs[out], inputs[into]
        if shape_of(a) != shape_of(b) or a.dtype != b.dtype:
            raise InputError(
                f"model {graph.name!r}: state {out!r} {shape_of(a)} {a.dtype} -> {into!r} {shape_of(b)} {b.dtype}: "
                "shape and type must be equal."
            )
