"""Kernels over rows: softmax, layer normalisation, reductions."""

from __future__ import annotations

import math

import onnx_ir as ir

from zoi.errors import UnsupportedOperator
from zoi.passes.lower.context import (
    DTYPES,
    MAX_DIMS,
    Context,
    dtype_of,
    float_attr,
    int_attr,
    ints_attr,
    name_of,
    optional,
    shape_of,
)
from zoi.passes.lower.matrix import row_stride, rows_of
from zoi.passes.lower.tensor import Tensor, collapse


def softmax(ctx: Context, node: ir.Node) -> None:
    """zoi.Softmax(x, mask?) over one axis."""
    name, out = name_of(node), node.outputs[0]
    x_value, mask_value = node.inputs[0], optional(node, 1)
    assert x_value is not None
    x = ctx.tensor(x_value)
    rank = len(x.shape)
    axis = int_attr(node, "axis", -1) % rank
    fields: dict[str, int | float] = {"log": int_attr(node, "log"), "scale": float_attr(node, "scale", 1.0)}
    mask_ref = None
    if axis != rank - 1 and x.strides[axis] == 1:  # the axis is innermost in memory: move it last
        others = [d for d in range(rank) if d != axis]
        view = x.permute([*others, axis])
        x, x_row = rows_of(ctx, name, view)
        y = ctx.result(out, [*others, axis], inner=axis).permute([*others, axis])
        fields |= _row_fields(x, x_row, y)
    elif axis == rank - 1:
        x, x_row = rows_of(ctx, name, x)
        y = ctx.result(out, inner=rank - 1)
        if row_stride(y) is None:
            y = ctx.tensors[out] = ctx.allocate(y.shape, y.dtype)
        fields |= _row_fields(x, x_row, y)
        if mask_value is not None:
            mask_ref = _mask(ctx, name, mask_value, x, fields)
    else:
        x = ctx.contiguous(name, x)
        y = ctx.tensors[out] = ctx.allocate(x.shape, x.dtype, None, out.name or "")
        inner = math.prod(x.shape[axis + 1 :])
        whole = x.shape[axis] * inner
        fields |= {"outer": math.prod(x.shape[:axis]), "axis": x.shape[axis], "inner": inner}
        fields |= {"x_outer": whole, "x_axis": inner, "y_outer": whole, "y_axis": inner}
    ctx.step(name, "softmax", fields, [x.ref, mask_ref, y.ref])


def _row_fields(x: Tensor, x_row: int, y: Tensor) -> dict[str, int]:
    y_row = row_stride(y)
    assert y_row is not None
    return {
        "outer": math.prod(x.shape[:-1]), "axis": x.shape[-1], "inner": 1,
        "x_outer": x_row, "x_axis": 1, "y_outer": y_row, "y_axis": 1,
    }  # fmt: skip


def _mask(ctx: Context, name: str, value: ir.Value, x: Tensor, fields: dict[str, int | float]) -> tuple[int, int]:
    """An additive mask as rows repeated: row of outer index o is o // div % rows."""
    mask = ctx.tensor(value).expand(x.shape)
    sizes, (steps,) = collapse(mask.shape[:-1], [mask.strides[:-1]])
    varying = [i for i, s in enumerate(steps) if s != 0]
    if len(varying) > 1 or mask.strides[-1] < 0 or any(steps[i] < 0 for i in varying):
        mask = ctx.contiguous(name, mask)
        sizes, (steps,) = collapse(mask.shape[:-1], [mask.strides[:-1]])
        varying = [i for i, s in enumerate(steps) if s != 0]
    at = varying[0] if varying else len(sizes) - 1
    fields |= {
        "mask_div": math.prod(sizes[at + 1 :]),
        "mask_rows": sizes[at] if varying else 1,
        "mask_row": steps[at] if varying else 0,
        "mask_col": mask.strides[-1],
    }
    return mask.ref


def norm(ctx: Context, node: ir.Node) -> None:
    """zoi.Norm(x, residual?, scale?, bias?) -> y (, sum) over the last axis."""
    name, out = name_of(node), node.outputs[0]
    x_value = node.inputs[0]
    assert x_value is not None
    x, x_row = rows_of(ctx, name, ctx.tensor(x_value))
    fields: dict[str, int | float] = {
        "rows": math.prod(x.shape[:-1]), "cols": x.shape[-1], "x_row": x_row, "rms": int_attr(node, "rms"),
        "epsilon": float_attr(node, "epsilon", 1e-5),
    }  # fmt: skip
    operands = [x.ref]
    residual_value = optional(node, 1)
    if residual_value is None:
        operands.append(None)  # type: ignore[arg-type]
    else:
        residual, fields["r_row"] = rows_of(ctx, name, ctx.tensor(residual_value).expand(x.shape))
        operands.append(residual.ref)
    for index in (2, 3):
        value = optional(node, index)
        operands.append(None if value is None else ctx.contiguous(name, ctx.tensor(value)).ref)  # type: ignore[arg-type]
    for value, field in zip([out, *node.outputs[1:2]], ("y_row", "s_row"), strict=False):
        y = ctx.result(value, inner=len(x.shape) - 1)
        row = row_stride(y)
        if row is None:
            y = ctx.tensors[value] = ctx.allocate(y.shape, y.dtype)
            row = y.shape[-1]
        fields[field] = row
        operands.append(y.ref)
    if len(operands) == 5:
        operands.append(None)  # type: ignore[arg-type]
    ctx.step(name, "norm", fields, operands)


def reduce(ctx: Context, node: ir.Node) -> None:
    """zoi.Reduce(x): the result keeps the memory order of what it keeps."""
    name, out = name_of(node), node.outputs[0]
    x_value = node.inputs[0]
    assert x_value is not None
    dtype = dtype_of(x_value)
    if str(dtype) not in ("float32", "int64", "int32"):
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name!r}, operator Reduce: found {dtype}; float32, int64, int32 are supported."
        )
    x = ctx.tensor(x_value)
    rank = len(x.shape)
    axes = sorted(a % rank for a in ints_attr(node, "axes", range(rank)))
    keepdims = bool(int_attr(node, "keepdims", 1))
    order = x.order if out not in ctx.outputs else tuple(range(rank))
    kept = [d for d in order if d not in axes]
    result_order = [d for d in order] if keepdims else [sum(k < d for k in kept) for d in kept]
    target = ctx.allocate(shape_of(out), dtype_of(out), result_order, out.name or "")
    ctx.tensors[out] = target
    kept_shape, (kept_stride,) = collapse([x.shape[d] for d in kept], [[x.strides[d] for d in kept]])
    reduced = [d for d in order if d in axes]
    red_shape, (red_stride,) = collapse([x.shape[d] for d in reduced], [[x.strides[d] for d in reduced]])
    if len(kept_shape) > MAX_DIMS or len(red_shape) > MAX_DIMS:
        raise UnsupportedOperator(f"model {ctx.model!r}, node {name!r}, operator Reduce: over {MAX_DIMS} dimensions.")
    fields = {
        "op": int_attr(node, "op"), "dtype": DTYPES[str(dtype)], "select_last": int_attr(node, "select_last"),
        "kept_dims": len(kept_shape), "kept_shape": kept_shape, "kept_stride": kept_stride,
        "reduced_dims": len(red_shape), "reduced_shape": red_shape, "reduced_stride": red_stride,
    }  # fmt: skip
    ctx.step(name, "reduce", fields, [x.ref, target.ref])
