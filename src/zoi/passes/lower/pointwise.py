"""zoi.Pointwise: a chain of element-wise operations, already fused, over whatever order its inputs have in memory."""

from __future__ import annotations

import onnx_ir as ir

from zoi.errors import UnsupportedOperator
from zoi.passes.lower.context import DTYPES, MAX_DIMS, Context, Ref, dtype_of, ints_attr, name_of, shape_of
from zoi.passes.lower.tensor import Tensor, collapse

INPUTS, IMMEDIATES, CODE = 8, 8, 24
COMPUTE = {"f32": "float32", "f64": "float64", "i64": "int64"}


def pointwise(ctx: Context, node: ir.Node) -> None:
    """zoi.Pointwise(x0..x7)."""
    name, out = name_of(node), node.outputs[0]
    shape = shape_of(out)
    y = ctx.result(out, _order(ctx, node))
    inputs: list[Tensor] = []
    for value in node.inputs:
        assert value is not None
        constant = ctx.constant(value) is not None and shape_of(value) == shape
        tensor = ctx.constant_in_order(value, y.order) if constant else ctx.tensor(value)
        inputs.append(tensor.expand(shape))
    order = y.order
    views = [t.permute(order) for t in (*inputs, y)]
    sizes, strides = collapse(views[-1].shape, [v.strides for v in views])
    if 0 in sizes:
        return
    if len(sizes) > MAX_DIMS:
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name!r}: element-wise over {len(sizes)} dimensions that do not merge; at most "
            f"{MAX_DIMS} are supported. Merge neighbouring dimensions with Reshape."
        )
    compute = node.attributes["compute"].as_string()
    imm_attr = node.attributes.get("imm")
    code = ints_attr(node, "code")
    in_stride = [0] * (INPUTS * MAX_DIMS)
    for i, steps in enumerate(strides[:-1]):
        in_stride[i * MAX_DIMS : i * MAX_DIMS + len(steps)] = steps
    fields = {
        "ndim": len(sizes), "shape": sizes, "inputs": len(inputs),
        "in_dtype": [DTYPES[str(t.dtype)] for t in inputs], "in_stride": in_stride,
        "out_dtype": DTYPES[str(dtype_of(out))], "out_stride": strides[-1], "compute": DTYPES[COMPUTE[compute]],
        "length": len(code) // 4, "code": code,
        "imm": [] if imm_attr is None else [float(v) for v in imm_attr.as_floats()],
    }  # fmt: skip
    refs: list[Ref] = [t.ref for t in inputs]
    refs += [None] * (INPUTS - len(refs))
    ctx.step(name, "pointwise", fields, [*refs, y.ref])


def _order(ctx: Context, node: ir.Node) -> tuple[int, ...] | None:
    """The memory order of the largest computed input of the result's full shape, if it differs from row-major."""
    out = node.outputs[0]
    shape = shape_of(out)
    if out in ctx.outputs:
        return None
    for value in node.inputs:
        if value is not None and ctx.constant(value) is None and shape_of(value) == shape:
            order = ctx.tensor(value).order
            return None if order == tuple(range(len(shape))) else order
    ranked = [v for v in node.inputs if v is not None and ctx.constant(v) is None and len(shape_of(v)) == len(shape)]
    if ranked:
        order = ctx.tensor(max(ranked, key=lambda v: ctx.tensor(v).size)).order
        return None if order == tuple(range(len(shape))) else order
    return None
