"""Upsample, and Resize as it was in opset 10: coordinates are divided by the scale, with no half pixels."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import constant, data, make, name_of, optional, required, shape_of, substitute, text_attr

FIRST_WITH_COORDINATES = 11


def resize(node: ir.Node, opset: int) -> None:
    """Resize with all attributes written out. Nearest rounds down where an axis grows and up where it shrinks."""
    if node.op_type == "Resize" and opset >= FIRST_WITH_COORDINATES:
        return
    x, out = required(node), node.outputs[0]
    attr = node.attributes.get("scales")
    given = data(optional(node, 1)) if attr is None else np.array(attr.as_floats(), np.float32)
    if given is None:
        return
    scales = [float(s) for s in given]
    if len(scales) != len(shape_of(x)) or any(s <= 0 for s in scales):
        raise ValueError(f"scales {scales} of an input of rank {len(shape_of(x))}")
    mode = text_attr(node, "mode", "nearest")
    if mode != "nearest" or min(scales) >= 1 or max(scales) <= 1:
        substitute(node, _resized(node, x, scales, shape_of(out), mode, ""))
        return
    wider = [max(s, 1.0) for s in scales]
    shape = [n if s > 1 else m for s, n, m in zip(scales, shape_of(out), shape_of(x), strict=True)]
    x = _resized(node, x, wider, shape, mode, ".wider")
    substitute(node, _resized(node, x, [min(s, 1.0) for s in scales], shape_of(out), mode, ""))


def _resized(
    before: ir.Node, x: ir.Value, scales: list[float], shape: list[int] | tuple[int, ...], mode: str, suffix: str
) -> ir.Value:
    factors = constant(np.array(scales, np.float32), f"{name_of(before)}{suffix}.scales")
    return make(
        before, "Resize", [x, None, factors], shape, suffix=suffix, mode=mode,
        coordinate_transformation_mode="asymmetric", nearest_mode="floor" if min(scales) >= 1 else "ceil",
    )  # fmt: skip
