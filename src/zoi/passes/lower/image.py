"""Convolution, pooling and interpolation: kernels over channels-last images.

Images of rank 3 (N, C, L) are images of one row. A transposed convolution becomes one ordinary convolution for each
phase of its stride, so it has no kernel of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from zoi.errors import UnsupportedOperator
from zoi.passes.lower import interpolate
from zoi.passes.lower.context import (
    Context,
    activation,
    dtype_of,
    int_attr,
    ints_attr,
    name_of,
    optional,
    shape_of,
)
from zoi.passes.lower.tensor import Tensor, channels_last

Pair = tuple[int, int]
FEW_CHANNELS = 4


def as_2d(tensor: Tensor) -> Tensor:
    """(N, C, L) as (N, C, 1, L); (N, C, H, W) as it is."""
    if len(tensor.shape) == 4:
        return tensor
    n, c, length = tensor.shape
    row = max(abs(tensor.strides[2]) * length, 1)
    return replace(tensor, shape=(n, c, 1, length), strides=(*tensor.strides[:2], row, tensor.strides[2]))


def _pair(values: Sequence[int], one: int) -> Pair:
    return (one, values[0]) if len(values) == 1 else (values[0], values[1])


def _pads(node: ir.Node, spatial: int) -> tuple[int, int, int, int]:
    """(top, left, bottom, right)."""
    pads = ints_attr(node, "pads", [0] * (2 * spatial))
    return (pads[0], pads[1], pads[2], pads[3]) if spatial == 2 else (0, pads[0], 0, pads[1])


def _require_rank(ctx: Context, node: ir.Node, ranks: Sequence[int] = (3, 4)) -> None:
    assert node.inputs[0] is not None
    rank = len(shape_of(node.inputs[0]))
    if rank not in ranks:
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name_of(node)!r}, operator {node.op_type}: input of rank {rank}; "
            f"ranks {list(ranks)} (N, C, spatial...) are supported. Reshape volumes to images."
        )


def _strides(prefix: str, t: Tensor) -> dict[str, int]:
    return {f"{prefix}_image": t.strides[0], f"{prefix}_row": t.strides[2], f"{prefix}_pixel": t.strides[3]}


def conv(ctx: Context, node: ir.Node) -> None:
    """zoi.Conv(x, w, bias?, residual?)."""
    _require_rank(ctx, node)
    x_value, w_value = node.inputs[0], node.inputs[1]
    weights = ctx.constant(w_value)
    if weights is None:
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name_of(node)!r}, operator Conv: its weights are computed at run time; "
            "constant weights are supported. Make them an initializer."
        )
    assert x_value is not None
    spatial = weights.ndim - 2
    out = node.outputs[0]
    # A few channels inside a wider Concat cost more to compute there than to copy.
    apart = weights.shape[0] <= FEW_CHANNELS
    y = as_2d(ctx.result(out, channels_last(2 + spatial), inner=1, apart=apart))
    x = as_2d(ctx.image(name_of(node), ctx.tensor(x_value)))
    residual_value = optional(node, 3)
    residual = None
    if residual_value is not None:
        residual = ctx.tensor(residual_value)
        if math.prod(residual.shape) != residual.shape[1]:  # one number a channel stays as small as it is
            residual = ctx.image(name_of(node), residual.expand(shape_of(out)))
        residual = as_2d(residual.expand(shape_of(out)))
    top, left, _, _ = _pads(node, spatial)
    emit_conv(
        ctx,
        name_of(node),
        x,
        weights,
        ctx.constant(optional(node, 2)),
        residual,
        y,
        groups=int_attr(node, "group", 1),
        stride=_pair(ints_attr(node, "strides", [1] * spatial), 1),
        dilation=_pair(ints_attr(node, "dilations", [1] * spatial), 1),
        pad=(top, left),
        epilogue={**activation(node), "residual_after": int_attr(node, "residual_after")},
    )


def emit_conv(
    ctx: Context,
    name: str,
    x: Tensor,
    weights: np.ndarray[Any, Any],
    bias: np.ndarray[Any, Any] | None,
    residual: Tensor | None,
    y: Tensor,
    *,
    groups: int,
    stride: Pair,
    dilation: Pair,
    pad: Pair,
    epilogue: dict[str, Any],
) -> None:
    """One convolution over 4-D views, as the family that suits it: gemm, depthwise or conv."""
    n, channels, ih, iw = x.shape
    _, out_channels, oh, ow = y.shape
    if weights.ndim == 3:
        weights = weights[:, :, None, :]
    kh, kw = weights.shape[2:]
    bias_ref = None if bias is None else ctx.data(bias).ref
    residual_ref = None if residual is None else residual.ref
    window = {"kh": kh, "kw": kw, "sh": stride[0], "sw": stride[1], "dh": dilation[0], "dw": dilation[1]}
    window |= {"pt": pad[0], "pl": pad[1], "n": n, "ih": ih, "iw": iw, "oh": oh, "ow": ow}
    epilogue = dict(epilogue)

    if groups == channels == out_channels and residual is None and groups > 1:
        epilogue.pop("residual_after", None)
        fields = {**window, "c": channels, **_strides("x", x), **_strides("y", y), **epilogue}
        ctx.step(name, "depthwise", fields, [x.ref, ctx.data(weights).ref, bias_ref, y.ref])
        return

    if kh == kw == 1 and stride == (1, 1) and pad == (0, 0) and groups == 1 and (ih, iw) == (oh, ow):
        rows = [_pixels(t) for t in (x, y, residual) if t is not None]
        if all(r is not None for r in rows):
            fields = {"m": n * oh * ow, "n": out_channels, "k": channels, "b_transposed": 1, **epilogue}
            fields |= {"a_row": rows[0], "c_row": rows[1], "r_row": rows[2] if residual is not None else 0}
            flat = ctx.data(weights.reshape(out_channels, channels))
            ctx.step(name, "gemm", fields, [x.ref, flat.ref, bias_ref, residual_ref, y.ref])
            return

    if residual is not None and 0 in residual.strides:
        residual = ctx.in_order(name, residual, channels_last(4))
    fields = {**window, "ic": channels // groups, "oc": out_channels // groups, "groups": groups, **epilogue}
    fields |= {**_strides("x", x), **_strides("y", y)}
    if residual is not None:
        fields |= _strides("r", residual)
    ctx.step(name, "conv", fields, [x.ref, ctx.data(weights).ref, bias_ref, residual_ref, y.ref])


def _pixels(t: Tensor) -> int | None:
    """The one stride with which all pixels of an image follow each other, or None."""
    n, _, h, w = t.shape
    if n * h * w == 1:
        return max(t.shape[1], 1)
    dims = [(size, step) for size, step in ((n, t.strides[0]), (h, t.strides[2]), (w, t.strides[3])) if size > 1]
    for (_, outer), (size, step) in itertools.pairwise(dims):
        if outer != size * step:
            return None
    return dims[-1][1]


def conv_transpose(ctx: Context, node: ir.Node) -> None:
    """ConvTranspose (ONNX spec), one convolution a phase of the stride.

    Output row o gets tap k where (o + pad - k) is a multiple of the stride; for a fixed phase o % stride these taps are
    every stride-th one, and the input row moves with the output row: an ordinary stride-1 convolution.
    """
    _require_rank(ctx, node)
    x_value, out = node.inputs[0], node.outputs[0]
    weights = ctx.constant(node.inputs[1])
    if weights is None:
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name_of(node)!r}, operator ConvTranspose: its weights are computed at run "
            "time; constant weights are supported. Make them an initializer."
        )
    assert x_value is not None
    spatial = weights.ndim - 2
    groups = int_attr(node, "group", 1)
    stride = _pair(ints_attr(node, "strides", [1] * spatial), 1)
    dilation = _pair(ints_attr(node, "dilations", [1] * spatial), 1)
    top, left, _, _ = _pads(node, spatial)
    bias = ctx.constant(optional(node, 2))
    y = as_2d(ctx.result(out, channels_last(2 + spatial), inner=1))
    x = as_2d(ctx.image(name_of(node), ctx.tensor(x_value)))

    if weights.ndim == 3:
        weights = weights[:, :, None, :]
    per_group = weights.reshape(groups, weights.shape[0] // groups, *weights.shape[1:])
    weights = per_group.transpose(0, 2, 1, 3, 4).reshape(-1, weights.shape[0] // groups, *weights.shape[2:])
    weights = _dilate(weights, dilation)
    dense = groups == 1 and y.strides[3] == y.shape[1] and weights.shape[2:] == stride and (top, left) == (0, 0)
    if dense and y.shape[2:] == (x.shape[2] * stride[0], x.shape[3] * stride[1]):
        return _blocks(ctx, node, x, weights, bias, y, stride)
    for py in range(min(stride[0], y.shape[2])):
        taps_y, pad_y = _phase(weights.shape[2], stride[0], top, py)
        for px in range(min(stride[1], y.shape[3])):
            taps_x, pad_x = _phase(weights.shape[3], stride[1], left, px)
            part = weights[:, :, taps_y][:, :, :, taps_x]
            source, pads = x, (pad_y, pad_x)
            if part.size == 0:
                part, pads = np.zeros((*weights.shape[:2], 1, 1), weights.dtype), (0, 0)
            else:
                source = _skip_rows(_skip_rows(source, 2, pads), 3, pads)
                pads = (max(pads[0], 0), max(pads[1], 0))
            rows = y.slice(2, py, -(-(y.shape[2] - py) // stride[0]), stride[0])
            target = rows.slice(3, px, -(-(y.shape[3] - px) // stride[1]), stride[1])
            emit_conv(
                ctx, name_of(node), source, part, bias, None, target,
                groups=groups, stride=(1, 1), dilation=(1, 1), pad=pads, epilogue=activation(node),
            )  # fmt: skip


def _blocks(
    ctx: Context, node: ir.Node, x: Tensor, weights: np.ndarray[Any, Any], bias: Any, y: Tensor, stride: Pair
) -> None:
    """A kernel as large as its stride: each input pixel makes a block of its own, a row of it in one product."""
    channels, depth = weights.shape[:2]
    wide = stride[1] * channels
    for py in range(stride[0]):
        row = replace(
            y,
            offset=y.offset + py * y.strides[2],
            shape=(y.shape[0], wide, *x.shape[2:]),
            strides=(y.strides[0], 1, stride[0] * y.strides[2], wide),
        )
        part = weights[:, :, py].transpose(2, 0, 1).reshape(wide, depth, 1, 1)
        tiled = None if bias is None else np.tile(bias, stride[1])
        emit_conv(
            ctx, name_of(node), x, part, tiled, None, row,
            groups=1, stride=(1, 1), dilation=(1, 1), pad=(0, 0), epilogue=activation(node),
        )  # fmt: skip


def _skip_rows(x: Tensor, axis: int, pads: Pair) -> Tensor:
    """Drops leading rows that a negative padding leaves out (at least one stays: its taps fall outside)."""
    skip = min(max(-pads[axis - 2], 0), x.shape[axis] - 1)
    return x.slice(axis, skip, x.shape[axis] - skip)


def _phase(size: int, stride: int, pad: int, phase: int) -> tuple[list[int], int]:
    """The taps of a phase in convolution order, and that convolution's padding."""
    first = (phase + pad) % stride
    taps = list(range(first, size, stride))
    return taps[::-1], len(taps) - 1 - (phase + pad - first) // stride


def _dilate(weights: np.ndarray[Any, Any], dilation: Pair) -> np.ndarray[Any, Any]:
    if dilation == (1, 1):
        return weights
    kh, kw = ((size - 1) * d + 1 for size, d in zip(weights.shape[2:], dilation, strict=True))
    result = np.zeros((*weights.shape[:2], kh, kw), weights.dtype)
    result[:, :, :: dilation[0], :: dilation[1]] = weights
    return result


def pool(ctx: Context, node: ir.Node) -> None:
    """MaxPool and AveragePool with explicit pads."""
    _require_rank(ctx, node)
    if len(node.outputs) > 1 and node.outputs[1].uses():
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name_of(node)!r}, operator MaxPool: its indices are used; "
            "only its first output is supported."
        )
    x_value, out = node.inputs[0], node.outputs[0]
    assert x_value is not None
    spatial = len(shape_of(x_value)) - 2
    x = as_2d(ctx.image(name_of(node), ctx.tensor(x_value)))
    y = as_2d(ctx.result(out, channels_last(2 + spatial), inner=1))
    kernel = _pair(ints_attr(node, "kernel_shape"), 1)
    stride = _pair(ints_attr(node, "strides", [1] * spatial), 1)
    dilation = _pair(ints_attr(node, "dilations", [1] * spatial), 1)
    top, left, bottom, right = _pads(node, spatial)
    fields = {
        "mode": 0 if node.op_type == "MaxPool" else 1,
        "n": x.shape[0], "ih": x.shape[2], "iw": x.shape[3], "c": x.shape[1], "oh": y.shape[2], "ow": y.shape[3],
        "kh": kernel[0], "kw": kernel[1], "sh": stride[0], "sw": stride[1], "dh": dilation[0], "dw": dilation[1],
        "pt": top, "pl": left, "pb": bottom, "pr": right,
        "count_include_pad": int_attr(node, "count_include_pad"), **_strides("x", x), **_strides("y", y),
    }  # fmt: skip
    ctx.step(name_of(node), "pool", fields, [x.ref, y.ref])


def resize(ctx: Context, node: ir.Node) -> None:
    """Resize over the spatial dimensions of an image."""
    x_value, out = node.inputs[0], node.outputs[0]
    assert x_value is not None
    if dtype_of(x_value) != np.float32 or len(shape_of(x_value)) not in (3, 4):
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name_of(node)!r}, operator Resize: found {dtype_of(x_value)} of rank "
            f"{len(shape_of(x_value))}; float32 images of rank 3 or 4 are supported."
        )
    if shape_of(x_value)[:2] != shape_of(out)[:2]:
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name_of(node)!r}, operator Resize: it changes the batch or the channels; "
            "only spatial dimensions may change."
        )
    rank = len(shape_of(x_value))
    x = as_2d(ctx.image(name_of(node), ctx.tensor(x_value)))
    y = as_2d(ctx.result(out, channels_last(rank), inner=1))
    rules = interpolate.Rules.of(ctx, node)
    tables = [interpolate.table(rules, x.shape[d], y.shape[d], rules.scale(d, rank)) for d in (2, 3)]
    taps = max(index.shape[1] for index, _ in tables)
    operands = [x.ref]
    for index, weight in tables:
        missing = ((0, 0), (0, taps - index.shape[1]))
        operands.append(ctx.data(np.pad(index, missing)).ref)
        operands.append(ctx.data(np.pad(weight, missing)).ref)
    fields = {
        "taps": taps, "n": x.shape[0], "ih": x.shape[2], "iw": x.shape[3], "c": x.shape[1],
        "oh": y.shape[2], "ow": y.shape[3], **_strides("x", x), **_strides("y", y),
    }  # fmt: skip
    ctx.step(name_of(node), "resize", fields, [*operands, y.ref])
