"""Look-ups instead of arithmetic: a one-hot product is a row of its matrix; what follows is done to the table once."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import Array, constant, data, int_attr, is_op, make, producer, required, shape_of, substitute
from zoi.passes.evaluate import evaluate

ELEMENTWISE = frozenset(
    ("Abs", "Add", "Ceil", "Clip", "Cos", "Div", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu")
    + ("Log", "Max", "Min", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt")
    + ("Sub", "Tanh")
)
MAX_BYTES = 1 << 22


def fold_tables(model: ir.Model) -> None:
    """MatMul(one_hot(i), w) becomes Gather(w, i); element-wise operators on rows of a table become a new table."""
    opset = model.graph.opset_imports.get("", 0)
    for node in list(model.graph):
        if is_op(node, "MatMul"):
            _one_hot_product(node)
        elif node.domain == "" and node.op_type in ELEMENTWISE:
            _on_rows(node, opset)


def _one_hot_product(node: ir.Node) -> None:
    """Cast(Equal(i[..., 1], 0..n-1)) w: an index outside the range selects nothing, so a row of zeros is appended."""
    w = data(node.inputs[1])
    cast = producer(required(node), "Cast")
    equal = None if cast is None else producer(required(cast), "Equal")
    if w is None or w.ndim != 2 or cast is None or equal is None or w.dtype != np.float32:
        return
    if int_attr(cast, "to") != int(ir.DataType.FLOAT):
        return
    rows = w.shape[0]
    index, values = required(equal), data(equal.inputs[1])
    if values is None:
        index, values = required(equal, 1), data(equal.inputs[0])
    if values is None or index.const_value is not None or values.dtype.kind != "i":
        return
    if values.size != rows or values.shape[-1:] != (rows,) or not np.array_equal(values.ravel(), np.arange(rows)):
        return
    shape = shape_of(equal.outputs[0])
    if shape_of(index) != (*shape[:-1], 1):
        return
    # Clipped to [-1, rows], both ends name the last row, which is the zeros.
    bounds = [constant(np.array(v, values.dtype), f"{node.name}.{n}") for n, v in (("low", -1), ("high", rows))]
    clipped = make(node, "Clip", [index, *bounds], shape_of(index), suffix=".index")
    target = constant(np.array(shape[:-1], np.int64), f"{node.name}.index_shape")
    flat = make(node, "Reshape", [clipped, target], shape[:-1], suffix=".index_flat")
    table = constant(np.concatenate([w, np.zeros((1, w.shape[1]), w.dtype)]), f"{node.name}.table")
    substitute(node, make(node, "Gather", [table, flat], (*shape[:-1], w.shape[1]), suffix=".rows", axis=0))


def _on_rows(node: ir.Node, opset: int) -> None:
    index: ir.Value | None = None
    arrays: list[ir.Value] = []
    for value in node.inputs:
        if value is None:
            return
        gather = producer(value, "Gather")
        table = None if gather is None or int_attr(gather, "axis") != 0 else data(gather.inputs[0])
        if table is not None and gather is not None and (index is None or gather.inputs[1] is index):
            index = gather.inputs[1]
            arrays.append(required(gather))
        elif value.const_value is not None:
            arrays.append(value)
        else:
            return
    if index is None or index.const_value is not None:
        return
    tables = [v for v, value in zip(arrays, node.inputs, strict=True) if v is not value]
    rows, row_shape = shape_of(tables[0])[0], shape_of(tables[0])[1:]
    shape = shape_of(node.outputs[0])
    if shape != (*shape_of(index), *row_shape) or any(shape_of(t)[0] != rows for t in tables):
        return
    if rows > max(math.prod(shape_of(index)), 1) or rows * math.prod(row_shape) * 4 > MAX_BYTES:
        return
    inputs = []
    for value in arrays:
        array: Array | None = data(value)
        assert array is not None
        if value not in tables:
            extra = array.ndim - len(row_shape)
            if extra > 0 and any(n != 1 for n in array.shape[:extra]):
                return
            array = array.reshape(array.shape[max(extra, 0) :])
        inputs.append(constant(array, value.name or "constant"))
    copy = ir.Node("", node.op_type, inputs, list(node.attributes.values()), outputs=[ir.Value(name="rows")])
    computed = evaluate(copy, opset)
    if computed is None or computed[0].shape != (rows, *row_shape):
        return
    result = node.outputs[0].dtype
    rows_of_results = computed[0] if result is None else computed[0].astype(result.numpy())
    made = constant(rows_of_results, f"{node.name}.table")
    substitute(node, make(node, "Gather", [made, index], shape, suffix=".rows", axis=0))
