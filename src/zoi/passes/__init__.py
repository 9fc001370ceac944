"""From an ONNX model to its canonical form: few operators, every value static, and what can be fused is.

    load > bind_inputs > infer > fold_tables > standardise > fold_rest > share > merge_moves > fuse_activations >
    fuse_norms > fuse_softmax > hoist > fold_pads > fold_linear > fuse_attention > merge_moves > fuse_epilogues >
    push_scales > fuse_norm_residuals > fuse_pointwise > merge_linear > finish > check_canonical

The canonical operators, which `zoi.passes.lower` has a rule for each:

    zoi.Conv(x, w, bias?, residual?)   strides, dilations, pads, group, act, act_p0, act_p1, residual_after;
                                       images of rank 3 or 4, w and bias constant
    zoi.Gemm(x, w, bias?, residual?)   trans_b, act, act_p0, act_p1, residual_after; x [..., k], w a constant matrix
    zoi.MatMul(a, b, add?)             alpha, act, act_p0, act_p1; batches broadcast
    zoi.Attention(q, k, v, mask?)      scale: softmax(scale q k^T + mask) v
    zoi.Pointwise(x0..x7)              code, imm, compute: a chain of element-wise instructions (ops.Op);
                                       operands 0..7 are the inputs, 8..15 the immediates, 16 + i the results
    zoi.Softmax(x, mask?)              axis, log, scale
    zoi.Norm(x, residual?, scale?, bias?) -> y (, sum)     epsilon, rms; over the last axis
    zoi.Reduce(x)                      op, axes, keepdims, select_last
    ConvTranspose(x, w, bias?)         as ONNX has it, with explicit pads, and act, act_p0, act_p1
    MaxPool, AveragePool (explicit pads), Resize, LSTM, GRU, RNN
    Reshape, Transpose, Expand, Slice, Concat, Pad (constant), Gather

Activations, instructions and reductions are the numbers of `zoi.graph.ops`. Constants are values with `const_value`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from zoi.graph.load import Source, load
from zoi.passes.activations import fuse_activations
from zoi.passes.attention import fuse_attention
from zoi.passes.check import check_canonical
from zoi.passes.cleanup import finish, merge_moves, share
from zoi.passes.epilogue import fuse_epilogues
from zoi.passes.fold_linear import fold_linear
from zoi.passes.fold_pads import fold_pads
from zoi.passes.hoist import hoist
from zoi.passes.infer import fold_rest, infer
from zoi.passes.inputs import bind_inputs
from zoi.passes.merge_linear import merge_linear
from zoi.passes.norms import fuse_norm_residuals, fuse_norms
from zoi.passes.pointwise import fuse_pointwise
from zoi.passes.push_scales import push_scales
from zoi.passes.softmax import fuse_softmax
from zoi.passes.standard import standardise
from zoi.passes.tables import fold_tables

PASSES: tuple[Callable[[ir.Model], None], ...] = (
    infer,
    fold_tables,
    standardise,
    fold_rest,
    share,
    merge_moves,
    fuse_activations,
    fuse_norms,
    fuse_softmax,
    hoist,
    fold_pads,
    fold_linear,
    fuse_attention,
    merge_moves,
    fuse_epilogues,
    push_scales,
    fuse_norm_residuals,
    fuse_pointwise,
    merge_linear,
    finish,
    check_canonical,
)


def simplify(
    model: Source,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fix: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> ir.Model:
    """Reads a model and brings it into canonical form.

    Args:
        model: A file, its bytes, or a model already loaded, which stays as it is.
        shapes: Input name -> shape, for the inputs whose shape the model leaves open.
        fix: Input name -> value, for inputs that are the same in every run. They stop being inputs.
        name: The model's name in texts and errors; by default the file's.

    Raises:
        ModelError: The model is not well formed, or a shape depends on values known only at run time.
        UnsupportedOperator: An operator, or a form of one, has no kernel.
        InputError: `shapes` or `fix` do not fit the model.
    """
    result = load(model, name)
    bind_inputs(result, shapes, fix)
    for step in PASSES:
        step(result)
    return result
