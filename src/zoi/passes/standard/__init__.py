"""Writes the many operators and opset versions of ONNX in terms of a few.

Attributes become explicit, inputs that must be constant are so, and what can be said with other operators is. An
operator without a rule stays for `check` to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from zoi.errors import ModelError
from zoi.graph.edit import name_of
from zoi.passes.standard import arithmetic, linear, resize, rows, shape

Rule = Callable[[ir.Node], None]
RULES: Mapping[str, Rule] = {
    "AveragePool": rows.pool,
    "BatchNormalization": linear.batch_norm,
    "Cast": arithmetic.cast,
    "CastLike": arithmetic.cast,
    "Celu": arithmetic.celu,
    "Clip": arithmetic.clip,
    "Concat": shape.concat,
    "Conv": linear.conv,
    "ConvTranspose": linear.conv_transpose,
    "CumSum": rows.cumsum,
    "DepthToSpace": shape.depth_to_space,
    "Dropout": shape.pass_through,
    "Expand": shape.expand,
    "Flatten": shape.to_reshape,
    "Gelu": arithmetic.gelu,
    "Gemm": linear.gemm,
    "GlobalAveragePool": rows.global_pool,
    "GlobalMaxPool": rows.global_pool,
    "Identity": shape.pass_through,
    "IsInf": arithmetic.is_inf,
    "LayerNormalization": rows.layer_norm,
    "LpNormalization": rows.lp_norm,
    "MatMul": linear.matmul,
    "Max": arithmetic.variadic,
    "MaxPool": rows.pool,
    "Mean": arithmetic.variadic,
    "MeanVarianceNormalization": rows.mean_variance,
    "Min": arithmetic.variadic,
    "Mod": arithmetic.mod,
    "OneHot": arithmetic.one_hot,
    "PRelu": arithmetic.prelu,
    "Pad": shape.pad,
    "Pow": arithmetic.power,
    "RMSNormalization": rows.layer_norm,
    "Reshape": shape.to_reshape,
    "Selu": arithmetic.selu,
    "Shrink": arithmetic.shrink,
    "Slice": shape.slice_,
    "SpaceToDepth": shape.space_to_depth,
    "Split": shape.split,
    "Squeeze": shape.to_reshape,
    "Sum": arithmetic.variadic,
    "Swish": arithmetic.swish,
    "ThresholdedRelu": arithmetic.thresholded,
    "Tile": shape.tile,
    "Transpose": shape.transpose,
    "Trilu": arithmetic.trilu,
    "Unsqueeze": shape.to_reshape,
    "Where": arithmetic.where,
} | dict.fromkeys(rows.REDUCTIONS, rows.reduce)
BY_OPSET: dict[str, Callable[[ir.Node, int], None]] = {
    "GroupNormalization": rows.group_norm,
    "InstanceNormalization": rows.group_norm,
    "LogSoftmax": rows.softmax,
    "Resize": resize.resize,
    "Softmax": rows.softmax,
    "Upsample": resize.resize,
}


def standardise(model: ir.Model) -> None:
    """Applies the rule of every node once, in order."""
    opset = model.graph.opset_imports.get("", 0)
    for node in list(model.graph):
        if node.domain != "":
            continue
        try:
            if node.op_type in RULES:
                RULES[node.op_type](node)
            elif node.op_type in BY_OPSET:
                BY_OPSET[node.op_type](node, opset)
        except (ValueError, TypeError, IndexError, ArithmeticError, AssertionError) as error:
            raise ModelError(
                f"model {model.graph.name!r}, node {name_of(node)!r}, operator {node.op_type}: its attributes and "
                f"inputs do not fit each other: {error}."
            ) from error
