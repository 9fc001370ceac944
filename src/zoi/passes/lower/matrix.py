"""Matrix products: zoi.Gemm against constant weights, zoi.MatMul between two computed tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import onnx_ir as ir

from zoi.passes.lower.context import Context, activation, float_attr, int_attr, name_of, optional, shape_of
from zoi.passes.lower.tensor import Shape, Tensor, collapse, dense_strides, single_stride


def rows_of(ctx: Context, name: str, tensor: Tensor) -> tuple[Tensor, int]:
    """(tensor, row stride) of a tensor seen as a matrix over its last dimension, copied if it cannot be."""
    row = row_stride(tensor)
    if row is None:
        tensor = ctx.contiguous(name, tensor)
        row = tensor.shape[-1]
    return tensor, row


def row_stride(tensor: Tensor) -> int | None:
    """The one stride between rows whose elements are contiguous, or None."""
    if tensor.shape[-1] > 1 and tensor.strides[-1] != 1:
        return None
    rows = single_stride(tensor.shape[:-1], tensor.strides[:-1])
    if rows is None or rows[1] < 0:
        return None
    return rows[1] if rows[0] > 1 else tensor.shape[-1]


def gemm(ctx: Context, node: ir.Node) -> None:
    """zoi.Gemm(x, w, bias?, residual?)."""
    name, out = name_of(node), node.outputs[0]
    x_value, w_value = node.inputs[0], node.inputs[1]
    assert x_value is not None and w_value is not None
    x, a_row = rows_of(ctx, name, ctx.tensor(x_value))
    y = ctx.result(out, inner=len(shape_of(out)) - 1)
    c_row = row_stride(y)
    target = y
    if c_row is None:  # the result's place is no matrix: compute beside it
        target = ctx.allocate(y.shape, y.dtype)
        c_row = y.shape[-1]
    residual_ref, r_row = None, 0
    residual_value = optional(node, 3)
    if residual_value is not None:
        residual, r_row = rows_of(ctx, name, ctx.tensor(residual_value).expand(y.shape))
        residual_ref = residual.ref
    bias = optional(node, 2)
    transposed = int_attr(node, "trans_b")
    fields = {
        "m": math.prod(y.shape[:-1]), "n": y.shape[-1], "k": x.shape[-1], "a_row": a_row, "c_row": c_row,
        "r_row": r_row, "b_transposed": transposed, "residual_after": int_attr(node, "residual_after"),
        **activation(node),
    }  # fmt: skip
    bias_ref = None if bias is None else ctx.tensor(bias).ref
    ctx.step(name, "gemm", fields, [x.ref, ctx.tensor(w_value).ref, bias_ref, residual_ref, target.ref])
    if target is not y:
        ctx.copy(f"{name}.store", target, y)


def matmul(ctx: Context, node: ir.Node) -> None:
    """zoi.MatMul(a, b, add?) with ONNX MatMul's broadcasting."""
    name, out = name_of(node), node.outputs[0]
    a_value, b_value, add_value = node.inputs[0], node.inputs[1], optional(node, 2)
    assert a_value is not None and b_value is not None
    a, b = ctx.tensor(a_value), ctx.tensor(b_value)
    y_shape = shape_of(out)
    full = y_shape
    if len(a.shape) == 1:
        a = a.expand((1, *a.shape))
        full = (*full[:-1], 1, full[-1]) if len(b.shape) > 1 else (*full, 1)
    if len(b.shape) == 1:
        b = Tensor(b.buffer, b.offset, (b.shape[0], 1), (b.strides[0], 1), b.dtype)
        full = (*full, 1)
    y = ctx.result(out, inner=len(y_shape) - 1 if y_shape == full else None)
    if y_shape != full:
        if not y.is_contiguous:
            y = ctx.tensors[out] = ctx.allocate(y_shape, y.dtype)
        y = Tensor(y.buffer, y.offset, full, dense_strides(full), y.dtype)
    batch = full[:-2]
    a, b = a.expand((*batch, *a.shape[-2:])), b.expand((*batch, *b.shape[-2:]))
    tensors = [a, b, y]
    if add_value is not None:
        tensors.append(ctx.tensor(add_value).expand(full))
    alpha = float_attr(node, "alpha", 1.0)
    for part in _two_batch_dims(tensors):
        sizes, strides, (a, b, y, *add) = part
        fields = {
            "batch0": sizes[0], "batch1": sizes[1], "m": full[-2], "n": full[-1], "k": a.shape[-1], "alpha": alpha,
            **activation(node),
        }  # fmt: skip
        for letter, tensor, (outer, inner) in zip("abcd", [a, b, y, *add], strides, strict=False):
            fields |= {f"{letter}_batch0": outer, f"{letter}_batch1": inner, f"{letter}_row": tensor.strides[-2]}
            if letter != "c":
                fields[f"{letter}_col"] = tensor.strides[-1]
        ctx.step(name, "matmul", fields, [a.ref, b.ref, add[0].ref if add else None, y.ref])


def attention(ctx: Context, node: ir.Node) -> None:
    """zoi.Attention(q, k, v, mask?): softmax(scale q k^T + mask) v."""
    name, out = name_of(node), node.outputs[0]
    values = node.inputs[:3]
    mask_value = optional(node, 3)
    y_shape = shape_of(out)
    batch = y_shape[:-2]
    y = ctx.result(out, inner=len(y_shape) - 1)
    tensors = [y]
    for value in values:
        assert value is not None
        tensor = ctx.tensor(value)
        if tensor.shape[-1] > 1 and tensor.strides[-1] != 1:
            tensor = ctx.contiguous(name, tensor)
        tensors.append(tensor.expand((*batch, *tensor.shape[-2:])))
    keys = tensors[2].shape[-2]
    if mask_value is not None:
        tensors.append(ctx.tensor(mask_value).expand((*y_shape[:-1], keys)))
    for sizes, strides, part in _two_batch_dims(tensors):
        fields = {
            "batch0": sizes[0], "batch1": sizes[1], "m": y_shape[-2], "n": keys, "d": part[1].shape[-1],
            "dv": y_shape[-1], "scale": float_attr(node, "scale", 1.0),
        }  # fmt: skip
        for letter, tensor, (outer, inner) in zip(["y", "q", "k", "v", "mask"], part, strides, strict=False):
            fields |= {f"{letter}_batch0": outer, f"{letter}_batch1": inner, f"{letter}_row": tensor.strides[-2]}
        mask_ref = None
        if len(part) > 4:
            fields["mask_col"] = part[4].strides[-1]
            mask_ref = part[4].ref
        ctx.step(name, "attention", fields, [part[1].ref, part[2].ref, part[3].ref, mask_ref, part[0].ref])


def _two_batch_dims(
    tensors: list[Tensor],
) -> Iterator[tuple[list[int], list[tuple[int, int]], list[Tensor]]]:
    """Batches as (sizes of two dimensions, strides of each tensor, tensors), one item a step."""
    batch: Shape = tensors[0].shape[:-2]
    sizes, strides = collapse(batch, [t.strides[:-2] for t in tensors])
    outer = sizes[:-2]
    inner = ([1, 1, *sizes])[-2:]
    pairs = [tuple(([0, 0, *s])[-2:]) for s in strides]
    for index in itertools.product(*(range(n) for n in outer)):
        moved = [
            Tensor(t.buffer, t.offset + sum(i * k for i, k in zip(index, s, strict=False)), t.shape, t.strides, t.dtype)
            for t, s in zip(tensors, strides, strict=True)
        ]
        yield inner, [(p[0], p[1]) for p in pairs], moved
