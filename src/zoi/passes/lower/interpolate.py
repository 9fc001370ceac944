"""ONNX Resize's coordinate rules as tables of source indices and weights (ONNX operator spec, Resize-19)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from zoi.errors import UnsupportedOperator
from zoi.passes.lower.context import Context, float_attr, int_attr, name_of, optional, shape_of

MODES = {"nearest": 1, "linear": 2, "cubic": 4}


@dataclass(frozen=True)
class Rules:
    """The attributes of a Resize node, and its scales an axis where it states them."""

    mode: str
    coordinates: str
    nearest: str
    cubic_a: float
    exclude_outside: bool
    scales: dict[int, float]

    @staticmethod
    def of(ctx: Context, node: ir.Node) -> Rules:
        """Reads a node; raises UnsupportedOperator for what has no table."""

        def text(name: str, default: str) -> str:
            attr = node.attributes.get(name)
            return default if attr is None else attr.as_string()

        rank = len(shape_of(node.outputs[0]))
        axes_attr = node.attributes.get("axes")
        axes = [int(a) % rank for a in axes_attr.as_ints()] if axes_attr is not None else list(range(rank))
        given = ctx.constant(optional(node, 2))
        scales = {} if given is None or given.size == 0 else dict(zip(axes, map(float, given), strict=True))
        rules = Rules(
            text("mode", "nearest"),
            text("coordinate_transformation_mode", "half_pixel"),
            text("nearest_mode", "round_prefer_floor"),
            float_attr(node, "cubic_coeff_a", -0.75),
            bool(int_attr(node, "exclude_outside")),
            scales,
        )
        antialias = int_attr(node, "antialias")
        if rules.mode not in MODES or antialias or rules.coordinates == "tf_crop_and_resize":
            raise UnsupportedOperator(
                f"model {ctx.model!r}, node {name_of(node)!r}, operator Resize: mode {rules.mode!r}, coordinates "
                f"{rules.coordinates!r}, antialias {antialias}; modes {sorted(MODES)} without antialias and "
                "without tf_crop_and_resize are supported."
            )
        return rules

    def scale(self, axis: int, rank: int) -> float | None:
        """The scale stated for axis 2 or 3 of the 4-D view, or None."""
        return self.scales.get(axis if rank == 4 else axis - 1)


def table(
    rules: Rules, size: int, out: int, scale: float | None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """(indices, weights), both [out, taps], for one axis of `size` elements resized to `out`."""
    taps = MODES[rules.mode]
    index = np.zeros((out, taps), np.int32)
    weight = np.zeros((out, taps), np.float32)
    factor = out / size if scale is None else scale
    for o in range(out):
        x = _source(rules.coordinates, o, size, out, factor)
        if taps == 1:
            index[o, 0], weight[o, 0] = min(max(_nearest(rules.nearest, x), 0), size - 1), 1
            continue
        base = math.floor(x)
        taken = [base + t - (taps // 2 - 1) for t in range(taps)]
        values = _weights(taps, x - base, rules.cubic_a)
        if rules.exclude_outside:
            values = [v if 0 <= i < size else 0.0 for i, v in zip(taken, values, strict=True)]
            total = sum(values)
            values = [v / total for v in values]
        index[o] = np.clip(taken, 0, size - 1)
        weight[o] = values
    return index, weight


def _source(mode: str, o: int, size: int, out: int, scale: float) -> float:
    """The source coordinate of output element o."""
    if scale == 1.0 and size == out and mode != "align_corners":
        return float(o)
    if mode == "align_corners":
        return 0.0 if out == 1 else o * (size - 1) / (out - 1)
    if mode == "asymmetric":
        return o / scale
    if mode == "pytorch_half_pixel" and out == 1:
        return 0.0
    if mode == "half_pixel_symmetric":
        adjust = out / (scale * size)
        return size / 2 * (1 - adjust) + (o + 0.5) / scale - 0.5
    return (o + 0.5) / scale - 0.5


def _nearest(mode: str, x: float) -> int:
    if mode == "floor":
        return math.floor(x)
    if mode == "ceil":
        return math.ceil(x)
    if mode == "round_prefer_ceil":
        return math.floor(x + 0.5)
    return math.ceil(x - 0.5)


def _weights(taps: int, ratio: float, a: float) -> list[Any]:
    if taps == 2:
        return [1 - ratio, ratio]

    def near(t: float) -> float:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: float) -> float:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return [far(1 + ratio), near(ratio), near(1 - ratio), far(2 - ratio)]
