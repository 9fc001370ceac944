"""The last pass: is every node one that the lowering has a rule for? If not, say which and what is supported."""

from __future__ import annotations

import onnx_ir as ir

from zoi.errors import ModelError, UnsupportedOperator
from zoi.graph.edit import data, is_op, name_of, optional, rank_of, required

F32 = ir.DataType.FLOAT
MOVES = ("Reshape", "Transpose", "Expand", "Slice", "Concat", "Pad", "Gather")
IMAGES = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize")
CANONICAL = {
    "": frozenset({*MOVES, "ConvTranspose", "MaxPool", "AveragePool", "Resize", "LSTM", "GRU", "RNN"}),
    "zoi": frozenset({"Conv", "Gemm", "MatMul", "Attention", "Pointwise", "Softmax", "Norm", "Reduce"}),
}


def check_canonical(model: ir.Model) -> None:
    """Checks every node of a simplified model.

    Raises:
        UnsupportedOperator: A node is not canonical, or has a type or form that no kernel takes.
        ModelError: A value has no static shape or no type.
    """
    name = model.graph.name or "model"
    for node in model.graph:
        fault = _fault(node)
        if fault is not None:
            raise UnsupportedOperator(f"model {name!r}, node {name_of(node)!r}, operator {node.op_type}: {fault}")
        for value in node.outputs:
            if not value.uses() and not value.is_graph_output():
                continue
            if value.dtype is None or value.shape is None or not value.shape.is_static():
                raise ModelError(
                    f"model {name!r}, node {name_of(node)!r}, operator {node.op_type}: its result {value.name!r} is "
                    f"{value.dtype} of shape {value.shape}; every value needs a type and a static shape. State the "
                    "inputs' shapes with `shapes`."
                )


def _fault(node: ir.Node) -> str | None:
    if node.op_type not in CANONICAL.get(node.domain, ()):
        return _why(node)
    if is_op(node, *MOVES) or is_op(node, "Pointwise", domain="zoi"):
        return _constant_inputs(node)
    types: set[ir.DataType | None] = {
        v.dtype for v in (*node.inputs[:4], *node.outputs) if v is not None and v.dtype is not None
    }
    if is_op(node, "Reduce", domain="zoi"):
        types = {v.dtype for v in node.inputs if v is not None} - {ir.DataType.INT64, ir.DataType.INT32}
    if is_op(node, "Resize"):
        types = {required(node).dtype}
    if types - {F32, None}:
        found = ", ".join(sorted(str(t) for t in types - {F32, None}))
        return f"it computes in {found}; float32 is supported. Convert the model to float32."
    if node.op_type in IMAGES and node.inputs[0] is not None and rank_of(node.inputs[0]) not in (3, 4):
        return (
            f"its input has rank {rank_of(node.inputs[0])}; images of rank 3 (N, C, L) and 4 (N, C, H, W) are "
            "supported. Reshape volumes to images."
        )
    return _constant_inputs(node)


WEIGHTS: dict[str, tuple[int, ...]] = {
    "Conv": (1, 2), "ConvTranspose": (1, 2), "Gemm": (1, 2), "LSTM": (1, 2, 3, 7), "GRU": (1, 2, 3), "RNN": (1, 2, 3),
    "Pad": (1, 2, 3), "Slice": (1, 2, 3, 4), "Resize": (2, 3),
}  # fmt: skip


def _constant_inputs(node: ir.Node) -> str | None:
    for index in WEIGHTS.get(node.op_type, ()):
        value = optional(node, index)
        if value is not None and data(value) is None:
            return (
                f"its input {index}, {value.name!r}, is computed when the model runs; it must be constant. Make it an "
                "initializer, or fix the input it comes from with `fix`."
            )
    return None


REASONS: dict[str, str] = {
    "If": "its condition is known only when the model runs; a condition that follows from shapes, constants or a "
    "fixed input (`fix`) is supported.",
    "Loop": "loops are not supported; export the model with the loop unrolled.",
    "Scan": "loops are not supported; export the model with the loop unrolled.",
}


def _why(node: ir.Node) -> str:
    if node.op_type in REASONS:
        return REASONS[node.op_type]
    return (
        "no kernel takes it, or not in this form (its attributes, types or inputs computed at run time). Export the "
        "model without it, or compute it before the model."
    )
