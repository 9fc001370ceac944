"""Convolutions and matrix products: zoi.Conv, zoi.Gemm, zoi.MatMul; and batch normalisation, which folds into them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    Array,
    constant,
    data,
    float_attr,
    int_attr,
    ints_attr,
    make,
    name_of,
    optional,
    rank_of,
    required,
    reshape,
    shape_of,
    substitute,
    text_attr,
)
from zoi.passes.standard.shape import permute

FLOAT = np.float32


def auto_pads(node: ir.Node, size: list[int], kernel: list[int], strides: list[int], dilations: list[int]) -> list[int]:
    """The explicit pads, all begins then all ends."""
    mode = text_attr(node, "auto_pad", "NOTSET")
    spatial = len(kernel)
    if mode in ("NOTSET", ""):
        return ints_attr(node, "pads") or [0] * (2 * spatial)
    if mode == "VALID":
        return [0] * (2 * spatial)
    begins, ends = [], []
    for n, k, s, d in zip(size, kernel, strides, dilations, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    return begins + ends


def check_window(x: ir.Value, kernel: list[int], strides: list[int], dilations: list[int], pads: list[int]) -> None:
    """Raises ValueError unless a window's attributes have as many numbers as the image has dimensions."""
    spatial = rank_of(x) - 2
    lengths = [len(kernel), len(strides), len(dilations), len(pads) / 2]
    if spatial < 1 or any(n != spatial for n in lengths):
        raise ValueError(
            f"an input of rank {rank_of(x)} with kernel {kernel}, strides {strides}, dilations {dilations}, pads {pads}"
        )


def conv(node: ir.Node) -> None:
    """Conv: explicit attributes. Images of rank 3 stay so."""
    x, w = required(node), required(node, 1)
    spatial = rank_of(w) - 2
    strides = ints_attr(node, "strides") or [1] * spatial
    dilations = ints_attr(node, "dilations") or [1] * spatial
    pads = auto_pads(node, list(shape_of(x)[2:]), list(shape_of(w)[2:]), strides, dilations)
    check_window(x, list(shape_of(w)[2:]), strides, dilations, pads)
    y = make(
        node, "Conv", [x, w, optional(node, 2)], shape_of(node.outputs[0]), domain="zoi", suffix="",
        strides=strides, dilations=dilations, pads=pads, group=int_attr(node, "group", 1),
    )  # fmt: skip
    substitute(node, y)


def conv_transpose(node: ir.Node) -> None:
    """ConvTranspose: explicit pads, and a bias as a constant."""
    x, w, out = required(node), required(node, 1), node.outputs[0]
    spatial = rank_of(w) - 2
    strides = ints_attr(node, "strides") or [1] * spatial
    dilations = ints_attr(node, "dilations") or [1] * spatial
    extra = ints_attr(node, "output_padding") or [0] * spatial
    pads = ints_attr(node, "pads") or [0] * (2 * spatial)
    mode = text_attr(node, "auto_pad", "NOTSET")
    if mode != "NOTSET" or ints_attr(node, "output_shape"):
        begins, ends = [], []
        for i in range(spatial):
            full = strides[i] * (shape_of(x)[2 + i] - 1) + extra[i] + (shape_of(w)[2 + i] - 1) * dilations[i] + 1
            total = 0 if mode == "VALID" else full - shape_of(out)[2 + i]
            small, large = total // 2, total - total // 2
            begins.append(small if mode == "SAME_UPPER" else large)
            ends.append(large if mode == "SAME_UPPER" else small)
        pads = begins + ends
    check_window(x, list(shape_of(w)[2:]), strides, dilations, pads)
    y = make(
        node, "ConvTranspose", [x, w, optional(node, 2)], shape_of(out), suffix="", strides=strides,
        dilations=dilations, pads=pads, output_padding=extra, group=int_attr(node, "group", 1),
    )  # fmt: skip
    substitute(node, y)


def batch_norm(node: ir.Node) -> None:
    """BatchNormalization at inference: a scale and a shift of each channel."""
    x = required(node)
    gamma, beta, mean, var = (data(v) for v in node.inputs[1:5])
    if gamma is None or beta is None or mean is None or var is None:
        return
    if rank_of(x) > 1 and any(a.shape != (shape_of(x)[1],) for a in (gamma, beta, mean, var)):
        raise ValueError(f"{shape_of(x)[1]} channels with parameters of shapes {gamma.shape}, {beta.shape}")
    gain = gamma.astype(np.float64) / np.sqrt(var.astype(np.float64) + float_attr(node, "epsilon", 1e-5))
    shift = beta - mean * gain
    shape = (-1, *[1] * (rank_of(x) - 2)) if rank_of(x) > 1 else (-1,)
    a = constant(gain.astype(FLOAT).reshape(shape), f"{name_of(node)}.scale")
    b = constant(shift.astype(FLOAT).reshape(shape), f"{name_of(node)}.shift")
    scaled = make(node, "Mul", [x, a], shape_of(x), suffix=".scale")
    substitute(node, make(node, "Add", [scaled, b], shape_of(x), suffix=""))


def gemm(node: ir.Node) -> None:
    """Gemm: zoi.Gemm where B is constant, with alpha and beta folded in; else zoi.MatMul."""
    a, b, c = required(node), required(node, 1), optional(node, 2)
    alpha, beta = float_attr(node, "alpha", 1.0), float_attr(node, "beta", 1.0)
    out = shape_of(node.outputs[0])
    if int_attr(node, "transA"):
        a = permute(node, a, [1, 0])
    weights = data(b)
    if beta == 0:
        c = None
    bias = data(c)
    if c is not None and beta != 1:
        if bias is not None:
            c = constant((bias * beta).astype(bias.dtype), f"{c.name}.beta")
        else:
            c = make(
                node, "Mul", [c, constant(np.array(beta, FLOAT), f"{name_of(node)}.beta")], shape_of(c), suffix=".beta"
            )
    if weights is None:
        if int_attr(node, "transB"):
            b = permute(node, b, [1, 0])
        y = make(node, "MatMul", [a, b], out, domain="zoi", suffix=".product" if c else "", alpha=alpha)
    else:
        if alpha != 1:
            b = constant((weights * alpha).astype(weights.dtype), f"{b.name}.alpha")
        y = make(
            node, "Gemm", [a, b], out, domain="zoi", suffix=".product" if c else "", trans_b=int_attr(node, "transB")
        )
    if c is not None:
        y = make(node, "Add", [y, c], out, suffix="")
    substitute(node, y)


def matmul(node: ir.Node) -> None:
    """MatMul: zoi.Gemm where the right side is a constant matrix."""
    a, b, out = required(node), required(node, 1), shape_of(node.outputs[0])
    weights = data(b)
    if weights is not None and rank_of(b) > 2 and all(n == 1 for n in shape_of(b)[:-2]) and rank_of(a) >= rank_of(b):
        b = reshape(node, b, shape_of(b)[-2:])
    if weights is not None and rank_of(b) == 2:
        substitute(node, make(node, "Gemm", [a, b], out, domain="zoi", suffix="", trans_b=0))
        return
    flipped = data(a)
    if flipped is not None and rank_of(a) == 2 and rank_of(b) == 2:  # (b^T a^T)^T: constant weights are packed
        w = constant(np.ascontiguousarray(flipped), f"{a.name}.weights")
        y = make(node, "Gemm", [permute(node, b, [1, 0]), w], out[::-1], domain="zoi", suffix=".product", trans_b=1)
        substitute(node, permute(node, y, [1, 0], suffix=""))
        return
    substitute(node, make(node, "MatMul", [a, b], out, domain="zoi", suffix="", alpha=1.0))


def channel_vector(array: Array | None, shape: tuple[int, ...], axis: int) -> Array | None:
    """A constant that varies along one axis of `shape` only, as that axis's vector; None if it is no such thing."""
    if array is None or array.ndim > len(shape):
        return None
    padded = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(n != 1 for d, n in enumerate(padded.shape) if d != axis) or padded.shape[axis] not in (1, shape[axis]):
        return None
    return np.broadcast_to(padded.reshape(-1), (shape[axis],))
