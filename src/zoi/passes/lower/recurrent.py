"""LSTM, GRU and RNN: one gemm over all steps for the input's part, then the sequential kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from zoi.errors import UnsupportedOperator
from zoi.passes.lower.context import Context, Ref, float_attr, int_attr, name_of, optional, shape_of
from zoi.passes.lower.matrix import row_stride
from zoi.passes.lower.tensor import Tensor

KINDS = {"LSTM": (0, 4, 3), "GRU": (1, 3, 2), "RNN": (2, 1, 1)}  # code, gates, activations a direction
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
# ONNX name -> (Activation value, default alpha, default beta), by activation.h.
ACTIVATIONS = {
    "Sigmoid": (3, 0.0, 0.0), "Tanh": (4, 0.0, 0.0), "Relu": (1, 0.0, 0.0), "HardSigmoid": (8, 0.2, 0.5),
    "LeakyRelu": (10, 0.01, 0.0), "Elu": (11, 1.0, 0.0), "Softplus": (12, 0.0, 0.0),
}  # fmt: skip


def recurrent(ctx: Context, node: ir.Node) -> None:
    """LSTM(X, W, R, B?, sequence_lens?, h0?, c0?, P?) and its kin, one direction after the other."""
    name, kind = name_of(node), node.op_type
    code, gates, per_direction = KINDS[kind]
    x_value = node.inputs[0]
    w_all, r_all = ctx.constant(node.inputs[1]), ctx.constant(node.inputs[2])
    bias_all, peephole = ctx.constant(optional(node, 3)), ctx.constant(optional(node, 7))
    assert x_value is not None
    if w_all is None or r_all is None or (optional(node, 3) is not None and bias_all is None):
        raise UnsupportedOperator(
            f"model {ctx.model!r}, node {name!r}, operator {kind}: weights computed at run time; constant weights are "
            "supported. Make W, R and B initializers."
        )
    x = ctx.tensor(x_value)
    if int_attr(node, "layout"):
        x = x.permute([1, 0, 2])
    hidden = r_all.shape[2]
    directions = w_all.shape[0]
    reverse_first = _text(node, "direction", "forward") == "reverse"
    outputs = _outputs(ctx, node)
    lens = _sequence_lens(ctx, node, x.shape[0])

    for d in range(directions):
        bias = None if bias_all is None else bias_all[d]
        into_gemm, r_bias = _split_bias(bias, kind, gates, hidden, bool(int_attr(node, "linear_before_reset")))
        projected = _project(ctx, name, x, w_all[d], into_gemm)
        fields: dict[str, Any] = {
            "kind": code, "seq": x.shape[0], "batch": x.shape[1], "hidden": hidden,
            "reverse": int(reverse_first or d == 1), "linear_before_reset": int_attr(node, "linear_before_reset"),
            "input_forget": int_attr(node, "input_forget"), "clip": float_attr(node, "clip"),
            "x_step": projected.strides[0], "x_batch": projected.strides[1],
        }  # fmt: skip
        fields |= _activations(ctx, node, d, per_direction)
        refs: list[Ref] = [projected.ref, ctx.data(r_all[d]).ref]
        refs.append(None if r_bias is None else ctx.data(r_bias).ref)
        refs.append(None if peephole is None else ctx.data(peephole[d]).ref)
        refs.append(_state_in(ctx, node, 5, d))
        refs.append(_state_in(ctx, node, 6, d) if kind == "LSTM" else None)
        refs.append(lens)
        y = outputs[0]
        if y is not None:
            part = y.slice(1, d, 1)
            fields |= {"y_step": part.strides[0], "y_batch": part.strides[2]}
            refs.append(part.ref)
        else:
            refs.append(None)
        refs += [None if t is None else t.slice(0, d, 1).ref for t in outputs[1:]]
        ctx.step(name, "recurrent", fields, refs)
    _store_outputs(ctx, node, outputs)


def _project(ctx: Context, name: str, x: Tensor, weights: np.ndarray[Any, Any], bias: Any) -> Tensor:
    """X W^T + bias for all steps: [seq, batch, gates * hidden]."""
    row = row_stride(x)
    if row is None:
        x = ctx.contiguous(name, x)
        row = x.shape[2]
    seq, batch, width = x.shape
    out = ctx.allocate((seq, batch, weights.shape[0]), np.float32)
    fields = {
        "m": seq * batch, "n": weights.shape[0], "k": width, "a_row": row, "c_row": weights.shape[0], "b_transposed": 1,
    }  # fmt: skip
    bias_ref = None if bias is None else ctx.data(bias).ref
    ctx.step(f"{name}.input", "gemm", fields, [x.ref, ctx.data(weights).ref, bias_ref, None, out.ref])
    return out


def _split_bias(bias: Any, kind: str, gates: int, hidden: int, linear_before_reset: bool) -> tuple[Any, Any]:
    """(what the gemm adds, what must stay beside h R^T): only a GRU's candidate gate needs the second."""
    if bias is None:
        return None, None
    w, r = bias[: gates * hidden].copy(), bias[gates * hidden :].copy()
    if kind != "GRU" or not linear_before_reset:
        return w + r, None
    w[: 2 * hidden] += r[: 2 * hidden]
    r[: 2 * hidden] = 0
    return w, r


def _text(node: ir.Node, name: str, default: str) -> str:
    attr = node.attributes.get(name)
    return default if attr is None else attr.as_string()


def _activations(ctx: Context, node: ir.Node, direction: int, count: int) -> dict[str, Any]:
    attr = node.attributes.get("activations")
    names = list(attr.as_strings()) if attr is not None else DEFAULTS[node.op_type] * 2
    names = names[direction * count : (direction + 1) * count]
    alphas, betas = (
        list(a.as_floats()) if (a := node.attributes.get(k)) is not None else []
        for k in ("activation_alpha", "activation_beta")
    )
    fields: dict[str, Any] = {"act_f": 0, "act_g": 0, "act_h": 0, "act_p0": [0.0] * 3, "act_p1": [0.0] * 3}
    for i, (key, act) in enumerate(zip(("act_f", "act_g", "act_h"), names, strict=False)):
        if act not in ACTIVATIONS:
            raise UnsupportedOperator(
                f"model {ctx.model!r}, node {name_of(node)!r}, operator {node.op_type}: activation {act!r}; "
                f"{sorted(ACTIVATIONS)} are supported."
            )
        code, alpha, beta = ACTIVATIONS[act]
        at = direction * count + i
        fields[key] = code
        fields["act_p0"][i] = alphas[at] if at < len(alphas) else alpha
        fields["act_p1"][i] = betas[at] if at < len(betas) else beta
    return fields


def _state_in(ctx: Context, node: ir.Node, index: int, direction: int) -> Ref:
    """The initial state of a direction, [batch, hidden], or None for zeros."""
    value = optional(node, index)
    if value is None:
        return None
    data = ctx.constant(value)
    if data is not None and not np.any(data):
        return None
    state = ctx.tensor(value)
    if int_attr(node, "layout"):
        state = state.permute([1, 0, 2])
    return ctx.contiguous(name_of(node), state).slice(0, direction, 1).ref


def _sequence_lens(ctx: Context, node: ir.Node, seq: int) -> Ref:
    value = optional(node, 4)
    if value is None:
        return None
    data = ctx.constant(value)
    if data is not None and np.all(data == seq):
        return None
    return ctx.contiguous(name_of(node), ctx.tensor(value)).ref


def _outputs(ctx: Context, node: ir.Node) -> list[Tensor | None]:
    """Memory of Y [seq, dirs, batch, hidden], Y_h and Y_c [dirs, batch, hidden]; None where unused."""
    tensors: list[Tensor | None] = []
    for i in range(3):
        value = node.outputs[i] if i < len(node.outputs) else None
        used = value is not None and (value in ctx.outputs or bool(value.uses()))
        if value is None or not used:
            tensors.append(None)
            continue
        shape = shape_of(value)
        if int_attr(node, "layout"):
            perm = [1, 2, 0, 3] if i == 0 else [1, 0, 2]
            place = ctx.allocate(tuple(shape[p] for p in perm), np.float32)
        else:
            place = ctx.result(value, range(len(shape)), inner=len(shape) - 1)
            if i > 0 and not place.is_contiguous:
                place = ctx.tensors[value] = ctx.allocate(shape, np.float32)
        tensors.append(place)
    return tensors


def _store_outputs(ctx: Context, node: ir.Node, outputs: list[Tensor | None]) -> None:
    if not int_attr(node, "layout"):
        return
    for i, tensor in enumerate(outputs):
        if tensor is not None:
            ctx.tensors[node.outputs[i]] = tensor.permute([2, 0, 1, 3] if i == 0 else [1, 0, 2])
