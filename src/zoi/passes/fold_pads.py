"""Padding before a window becomes the window's own, where the results stay the same: no padded copy is made."""

from __future__ import annotations

import math

import onnx_ir as ir

from zoi.graph.edit import (
    data,
    int_attr,
    ints_attr,
    is_internal,
    is_op,
    optional,
    producer,
    rank_of,
    required,
    scalar,
    set_attrs,
    shape_of,
)


def fold_pads(model: ir.Model) -> None:
    """Looks at what every convolution and every pooling reads."""
    for node in list(model.graph):
        if is_op(node, "Conv", domain="zoi") or is_op(node, "MaxPool", "AveragePool"):
            _fold_pad(node)


def _fold_pad(window: ir.Node) -> None:
    pad = producer(required(window), "Pad")
    if pad is None or not is_internal(required(window)):
        return
    pads, fill = data(pad.inputs[1]), scalar(optional(pad, 2)) if optional(pad, 2) is not None else 0.0
    rank = rank_of(required(window))
    if pads is None or fill is None or (pads < 0).any() or pads[:2].any() or pads[rank : rank + 2].any():
        return
    own = ints_attr(window, "pads") or [0] * (2 * (rank - 2))
    total = [a + int(b) for a, b in zip(own, [*pads[2:rank], *pads[rank + 2 :]], strict=True)]
    if is_op(window, "Conv", domain="zoi"):
        same = fill == 0
    elif is_op(window, "AveragePool"):  # what was part of the image counts as such
        same = fill == 0 and (not any(own) or bool(int_attr(window, "count_include_pad")))
    else:
        least = fill == -math.inf or (fill == 0 and _is_positive(required(pad)))
        same = least and _all_see_the_image(window, shape_of(required(pad)), total)
    if not same:
        return
    set_attrs(window, pads=total)
    if is_op(window, "AveragePool"):
        set_attrs(window, count_include_pad=1)
    window.replace_input_with(0, required(pad))
    assert pad.graph is not None
    pad.graph.remove(pad, safe=True)


def _is_positive(value: ir.Value) -> bool:
    """Whether no element is below 0."""
    if producer(value, "Relu", "Sigmoid", "HardSigmoid") is not None:
        return True
    clip = producer(value, "Clip")
    low = None if clip is None else scalar(optional(clip, 1))
    return low is not None and low >= 0


def _all_see_the_image(window: ir.Node, image: tuple[int, ...], pads: list[int]) -> bool:
    """Whether every window has an element of the image, so that padding alone is never its maximum."""
    kernel, strides = ints_attr(window, "kernel_shape") or [], ints_attr(window, "strides") or []
    if any(d != 1 for d in ints_attr(window, "dilations") or []):
        return False
    axes = zip(image[2:], shape_of(window.outputs[0])[2:], kernel, strides, pads, strict=False)
    return all(begin < k and (out - 1) * s - begin < size for size, out, k, s, begin in axes)
