"""Softmax, normalisations and reductions: zoi.Softmax, zoi.Norm, zoi.Reduce; and pooling with explicit windows."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    constant,
    data,
    dtype_of,
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
)
from zoi.graph.ops import Reduction
from zoi.passes.evaluate import axes_of
from zoi.passes.standard.linear import auto_pads, check_window
from zoi.passes.standard.shape import permute

REDUCTIONS = {
    "ReduceSum": Reduction.SUM, "ReduceMean": Reduction.MEAN, "ReduceMax": Reduction.MAX, "ReduceMin": Reduction.MIN,
    "ReduceProd": Reduction.PROD, "ReduceL1": Reduction.L1, "ReduceL2": Reduction.L2,
    "ReduceSumSquare": Reduction.SUM_SQUARE, "ReduceLogSum": Reduction.LOG_SUM,
    "ReduceLogSumExp": Reduction.LOG_SUM_EXP, "ArgMax": Reduction.ARG_MAX, "ArgMin": Reduction.ARG_MIN,
}  # fmt: skip
# What is left of a reduction over no axes; the others are then the value itself.
OF_ONE = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceSumSquare": "Mul", "ReduceLogSum": "Log"}


def softmax(node: ir.Node, opset: int) -> None:
    """Softmax and LogSoftmax; before opset 13 they ran over all axes from `axis` on."""
    x, out = required(node), node.outputs[0]
    shape = shape_of(x)
    log = int(node.op_type == "LogSoftmax")
    axis = int_attr(node, "axis", -1 if opset >= 13 else 1)
    axis = axis % max(len(shape), 1)
    if opset < 13 and math.prod(shape[axis:]) != shape[axis]:
        flat = [math.prod(shape[:axis]), math.prod(shape[axis:])]
        y = make(
            node, "Softmax", [reshape(node, x, flat)], flat, domain="zoi", suffix=".rows", axis=1, log=log, scale=1.0
        )
        substitute(node, reshape(node, y, shape, suffix=""))
        return
    substitute(node, make(node, "Softmax", [x], shape_of(out), domain="zoi", suffix="", axis=axis, log=log, scale=1.0))


def norm(
    before: ir.Node, x: ir.Value, epsilon: float, rms: int, scale: ir.Value | None, bias: ir.Value | None, suffix: str
) -> ir.Value:
    """zoi.Norm over the last axis."""
    inputs = [x, None, scale, bias]
    return make(before, "Norm", inputs, shape_of(x), domain="zoi", suffix=suffix, epsilon=float(epsilon), rms=rms)


def layer_norm(node: ir.Node) -> None:
    """LayerNormalization and RMSNormalization over one or several trailing axes."""
    if any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
        return
    x = required(node)
    shape = shape_of(x)
    axis = int_attr(node, "axis", -1) % len(shape)
    width = math.prod(shape[axis:])
    rms = int(node.op_type == "RMSNormalization")
    parts: list[ir.Value | None] = []
    for index in (1, 2):
        value = optional(node, index)
        if value is not None and shape_of(value) != (width,):
            if math.prod(shape_of(value)) != width:
                array = data(value)
                if array is None:
                    return
                value = constant(
                    np.ascontiguousarray(np.broadcast_to(array, shape[axis:])).reshape(width), f"{value.name}.row"
                )
            else:
                value = reshape(node, value, [width])
        parts.append(value)
    rows = x if axis == len(shape) - 1 else reshape(node, x, [*shape[:axis], width])
    y = norm(node, rows, float_attr(node, "epsilon", 1e-5), rms, parts[0], parts[1], "" if rows is x else ".rows")
    substitute(node, y if rows is x else reshape(node, y, shape, suffix=""))


def group_norm(node: ir.Node, opset: int) -> None:
    """InstanceNormalization and GroupNormalization: rows of whole groups, then a scale and a shift of each channel."""
    x, scale, bias = required(node), required(node, 1), required(node, 2)
    shape = shape_of(x)
    groups = shape[1] if node.op_type == "InstanceNormalization" else int_attr(node, "num_groups", 1)
    rows = reshape(node, x, [shape[0], groups, math.prod(shape[1:]) // groups], suffix=".groups")
    y = norm(node, rows, float_attr(node, "epsilon", 1e-5), 0, None, None, ".rows")
    per_group = node.op_type == "GroupNormalization" and opset < 21
    wide = [1, groups, *[1] * (len(shape) - 1)] if per_group else [1, shape[1], *[1] * (len(shape) - 2)]
    apart = [shape[0], groups, shape[1] // groups, *shape[2:]] if per_group else shape
    y = reshape(node, y, apart, suffix=".back")
    y = make(node, "Mul", [y, reshape(node, scale, wide, suffix=".scale")], apart, suffix=".scaled")
    y = make(node, "Add", [y, reshape(node, bias, wide, suffix=".bias")], apart, suffix=".shifted" if per_group else "")
    substitute(node, reshape(node, y, shape, suffix=""))


def reduce(node: ir.Node) -> None:
    """The Reduce family, ArgMax and ArgMin."""
    x, out = required(node), node.outputs[0]
    rank = rank_of(x)
    if node.op_type.startswith("Arg"):
        axes = [int_attr(node, "axis") % rank]
    else:
        given = axes_of(node, [data(v) for v in node.inputs])
        if not given and int_attr(node, "noop_with_empty_axes"):
            _reduce_nothing(node, x)
            return
        axes = sorted(a % rank for a in given) if given else list(range(rank))
    shape = shape_of(x)
    if len(set(axes)) != len(axes) or rank_of(out) != (rank if int_attr(node, "keepdims", 1) else rank - len(axes)):
        raise ValueError(f"axes {axes} of an input of rank {rank}")
    if node.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd") and all(
        shape[a] == 1 for a in axes
    ):
        substitute(node, reshape(node, x, shape_of(out), suffix=""))
        return
    y = make(
        node, "Reduce", [x], shape_of(out), dtype=out.dtype, domain="zoi", suffix="", op=REDUCTIONS[node.op_type],
        axes=axes, keepdims=int_attr(node, "keepdims", 1), select_last=int_attr(node, "select_last_index"),
    )  # fmt: skip
    substitute(node, y)


def _reduce_nothing(node: ir.Node, x: ir.Value) -> None:
    op = OF_ONE.get(node.op_type)
    operands = [x, x] if op == "Mul" else [x]
    substitute(node, x if op is None else make(node, op, operands, shape_of(x), suffix=""))


def lp_norm(node: ir.Node) -> None:
    """LpNormalization: the values over their norm; zeros stay zeros."""
    x = required(node)
    axis = int_attr(node, "axis", -1) % rank_of(x)
    shape = [1 if d == axis else n for d, n in enumerate(shape_of(x))]
    op = REDUCTIONS["ReduceL1" if int_attr(node, "p", 2) == 1 else "ReduceL2"]
    total = make(
        node, "Reduce", [x], shape, domain="zoi", suffix=".norm", op=op, axes=[axis], keepdims=1, select_last=0
    )
    least = constant(np.array(np.finfo(dtype_of(x).numpy()).tiny, dtype_of(x).numpy()), f"{name_of(node)}.least")
    total = make(node, "Max", [total, least], shape, suffix=".positive")
    substitute(node, make(node, "Div", [x, total], shape_of(x), suffix=""))


def mean_variance(node: ir.Node) -> None:
    """MeanVarianceNormalization: a Norm over the axes moved last."""
    x = required(node)
    shape = shape_of(x)
    axes = [a % len(shape) for a in ints_attr(node, "axes") or [0, 2, 3]]
    perm = [d for d in range(len(shape)) if d not in axes] + axes
    moved = permute(node, x, perm)
    rows = reshape(
        node, moved, [math.prod(shape) // math.prod(shape[a] for a in axes), math.prod(shape[a] for a in axes)]
    )
    y = norm(node, rows, 1e-9, 0, None, None, ".rows")
    y = reshape(node, y, shape_of(moved), suffix=".back")
    substitute(node, permute(node, y, [int(i) for i in np.argsort(perm)], suffix=""))


def pool(node: ir.Node) -> None:
    """MaxPool and AveragePool with every attribute explicit, and pads that reach as far as the windows do."""
    x, out = required(node), node.outputs[0]
    kernel = ints_attr(node, "kernel_shape") or []
    spatial = len(kernel)
    size = list(shape_of(x)[2:])
    strides = ints_attr(node, "strides") or [1] * spatial
    dilations = ints_attr(node, "dilations") or [1] * spatial
    pads = auto_pads(node, size, kernel, strides, dilations)
    check_window(x, kernel, strides, dilations, pads)
    include = int_attr(node, "count_include_pad")
    if len(node.outputs) > 1 and (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        return
    y = make(
        node, node.op_type, [x], shape_of(out), suffix="", kernel_shape=kernel, strides=strides,
        dilations=dilations, pads=pads, count_include_pad=include,
    )  # fmt: skip
    substitute(node, y)


def global_pool(node: ir.Node) -> None:
    """GlobalAveragePool and GlobalMaxPool: one window over the image; over volumes, a reduction."""
    x, out = required(node), node.outputs[0]
    size = list(shape_of(x)[2:])
    average = node.op_type == "GlobalAveragePool"
    if len(size) not in (1, 2):
        op = REDUCTIONS["ReduceMean" if average else "ReduceMax"]
        axes = list(range(2, rank_of(x)))
        y = make(
            node, "Reduce", [x], shape_of(out), domain="zoi", suffix="", op=op, axes=axes, keepdims=1, select_last=0
        )
        substitute(node, y)
        return
    ones = [1] * len(size)
    y = make(
        node, "AveragePool" if average else "MaxPool", [x], shape_of(out), suffix="", kernel_shape=size, strides=ones,
        dilations=ones, pads=[0] * (2 * len(size)), count_include_pad=0,
    )  # fmt: skip
    substitute(node, y)


def cumsum(node: ir.Node) -> None:
    """CumSum along a known axis: a product with a triangle of ones."""
    x = required(node)
    axis_data = data(optional(node, 1))
    if axis_data is None or str(x.dtype) != "FLOAT":
        return
    shape = shape_of(x)
    axis = int(np.ravel(axis_data)[0]) % len(shape)
    n = shape[axis]
    ones = np.triu(np.ones((n, n), np.float32), 1 if int_attr(node, "exclusive") else 0)
    ones = ones[::-1, ::-1] if int_attr(node, "reverse") else ones
    perm = [d for d in range(len(shape)) if d != axis] + [axis]
    moved = permute(node, x, perm)
    w = constant(np.ascontiguousarray(ones), f"{name_of(node)}.ones")
    y = make(node, "Gemm", [moved, w], shape_of(moved), domain="zoi", suffix=".sum", trans_b=0)
    substitute(node, permute(node, y, [int(i) for i in np.argsort(perm)], suffix=""))
