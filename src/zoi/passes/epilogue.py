"""Moves activations and residual sums into the operator that computes their input: they cost no pass over memory."""

from __future__ import annotations

import onnx_ir as ir

from zoi.graph.edit import (
    float_attr,
    int_attr,
    is_internal,
    is_op,
    optional,
    producer,
    required,
    scalar,
    set_attrs,
    shape_of,
    substitute,
)
from zoi.graph.ops import Act

PLAIN = {
    "Relu": Act.RELU, "Sigmoid": Act.SIGMOID, "Tanh": Act.TANH, "Softplus": Act.SOFTPLUS, "Mish": Act.MISH,
}  # fmt: skip
OWN = {
    "Gelu": Act.GELU, "GeluTanh": Act.GELU_TANH, "Silu": Act.SILU, "Mish": Act.MISH, "HardSwish": Act.HARD_SWISH,
}  # fmt: skip


def fuse_epilogues(model: ir.Model) -> None:
    """Goes through the graph in order, so that a residual sum and then its activation both move."""
    for node in list(model.graph):
        if node.graph is None:
            continue
        if is_op(node, "Add"):
            _fuse_residual(node)
            if node.graph is not None:
                _fuse_matmul_add(node)
        elif is_op(node, "Mul", "Div"):
            _fuse_alpha(node)
        else:
            _fuse_activation(node)


def activation_of(node: ir.Node) -> tuple[Act, float, float] | None:
    """(activation, p0, p1) if the node is one of kernels/activation.h, else None."""
    if node.outputs[0].dtype != ir.DataType.FLOAT:
        return None
    if node.domain == "zoi":
        act = OWN.get(node.op_type)
        return None if act is None else (act, float_attr(node, "alpha"), float_attr(node, "beta"))
    if node.domain != "":
        return None
    kind = node.op_type
    if kind in PLAIN:
        return PLAIN[kind], 0.0, 0.0
    if kind == "Clip":
        low, high = scalar(optional(node, 1)), scalar(optional(node, 2))
        return None if low is None or high is None else (Act.CLIP, low, high)
    if kind == "HardSigmoid":
        return Act.HARD_SIGMOID, float_attr(node, "alpha", 0.2), float_attr(node, "beta", 0.5)
    if kind == "HardSwish":
        return Act.HARD_SWISH, 1 / 6, 0.5
    if kind == "LeakyRelu":
        return Act.LEAKY_RELU, float_attr(node, "alpha", 0.01), 0.0
    if kind == "Elu":
        return Act.ELU, float_attr(node, "alpha", 1.0), 0.0
    return None


def _takes_activation(node: ir.Node | None) -> bool:
    known = is_op(node, "Conv", "Gemm", "MatMul", domain="zoi") or is_op(node, "ConvTranspose")
    return known and node is not None and not int_attr(node, "act")


def _fuse_activation(node: ir.Node) -> None:
    found = activation_of(node)
    if found is None:
        return
    x = required(node)
    linear = x.producer()
    if not _takes_activation(linear) or not is_internal(x):
        return
    assert linear is not None
    act, p0, p1 = found
    set_attrs(linear, act=int(act), act_p0=float(p0), act_p1=float(p1))
    substitute(node, x)


def _fuse_residual(node: ir.Node) -> None:
    """A sum of which one term comes from a linear operator and the other is there by then.

    Of two candidates the later one takes the sum: the other is ready by then.
    """
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    out = node.outputs[0]
    candidates = []
    for value, other in ((required(node), required(node, 1)), (required(node, 1), required(node))):
        linear = value.producer()
        if not (is_op(linear, "Conv", "Gemm", domain="zoi") and is_internal(value)) or value is other:
            continue
        assert linear is not None
        if optional(linear, 3) is None and shape_of(value) == shape_of(out) and _takes_residual(linear, other, out):
            candidates.append((linear, value, other))
    if not candidates:
        return
    if len(candidates) == 2:
        order = {n: i for i, n in enumerate(graph)}
        candidates.sort(key=lambda c: -order[c[0]])
    linear, value, other = candidates[0]
    if len(linear.inputs) < 4:
        linear.resize_inputs(4)
    linear.replace_input_with(3, other)
    # An activation before the sum stays before it.
    set_attrs(linear, residual_after=int(bool(int_attr(linear, "act"))))
    _move_after(graph, linear, other, node)
    substitute(node, value)


def _takes_residual(linear: ir.Node, residual: ir.Value, out: ir.Value) -> bool:
    """Whether the residual has the result's shape; a depthwise convolution takes none."""
    depthwise = int_attr(linear, "group", 1) == shape_of(out)[1] > 1 if linear.op_type == "Conv" else False
    return not depthwise and shape_of(residual) == shape_of(out) and residual.dtype == ir.DataType.FLOAT


def _move_after(graph: ir.Graph, linear: ir.Node, residual: ir.Value, place: ir.Node) -> None:
    """Puts the node where the sum was, if the residual is computed after it."""
    if residual.producer() is None:
        return
    graph.remove(linear)
    graph.insert_before(place, linear)


def _fuse_alpha(node: ir.Node) -> None:
    """A product with a number becomes the scale of a zoi.MatMul."""
    for index in (0, 1) if node.op_type == "Mul" else (0,):
        x, number = required(node, index), scalar(node.inputs[1 - index])
        matmul = producer(x, "MatMul", domain="zoi")
        if matmul is None or not number or not is_internal(x) or shape_of(x) != shape_of(node.outputs[0]):
            continue
        if int_attr(matmul, "act") or optional(matmul, 2) is not None:
            continue
        alpha = float_attr(matmul, "alpha", 1.0)
        set_attrs(matmul, alpha=alpha * number if node.op_type == "Mul" else alpha / number)
        substitute(node, x)
        return


def _fuse_matmul_add(node: ir.Node) -> None:
    """A sum with something already there becomes what a zoi.MatMul adds."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    for index in (0, 1):
        x, other = required(node, index), required(node, 1 - index)
        matmul = producer(x, "MatMul", domain="zoi")
        if matmul is None or not is_internal(x) or x is other or shape_of(x) != shape_of(node.outputs[0]):
            continue
        if int_attr(matmul, "act") or optional(matmul, 2) is not None or other.dtype != ir.DataType.FLOAT:
            continue
        matmul.resize_inputs(3)
        matmul.replace_input_with(2, other)
        _move_after(graph, matmul, other, node)
        substitute(node, x)
        return
