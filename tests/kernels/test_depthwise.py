"""depthwise: windows, strides, dilations, borders and channel tails, against a float64 sum over shifted images."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2")
RNG = np.random.default_rng(11)
NONE, RELU, CLIP, TANH, HARD_SWISH = 0, 1, 2, 4, 9
Pair = tuple[int, int]


def image(n: int, h: int, w: int, c: int, gap: int = 0) -> Array:
    """Channels-last, with `gap` unused channels after each pixel."""
    return RNG.standard_normal((n, h, w, c + gap)).astype(np.float32)[..., :c]


def reference(x: Array, w: Array, bias: Array | None, out: Pair, stride: Pair, dilation: Pair, pad: Pair) -> Array:
    n, ih, iw, c = x.shape
    kh, kw = w.shape[2:]
    oh, ow = out
    high = (oh - 1) * stride[0] + (kh - 1) * dilation[0] + 1
    wide = (ow - 1) * stride[1] + (kw - 1) * dilation[1] + 1
    padded = np.zeros((n, max(high, ih + pad[0]), max(wide, iw + pad[1]), c))
    padded[:, pad[0] : pad[0] + ih, pad[1] : pad[1] + iw] = x
    y = np.zeros((n, oh, ow, c)) + (0 if bias is None else bias.astype(np.float64))
    for ky in range(kh):
        for kx in range(kw):
            top, left = ky * dilation[0], kx * dilation[1]
            taps = padded[:, top : top + high : stride[0], left : left + wide : stride[1]][:, :oh, :ow]
            y += taps * w[:, 0, ky, kx].astype(np.float64)
    return y


def fields(x: Array, y: Array, w: Array, stride: Pair, dilation: Pair, pad: Pair) -> dict[str, int | float]:
    def steps(name: str, a: Array) -> dict[str, int | float]:
        return {f"{name}_{what}": a.strides[d] // 4 for d, what in enumerate(("image", "row", "pixel"))}

    n, ih, iw, c = x.shape
    return {
        "n": n, "ih": ih, "iw": iw, "c": c, "oh": y.shape[1], "ow": y.shape[2], "kh": w.shape[2], "kw": w.shape[3],
        "sh": stride[0], "sw": stride[1], "dh": dilation[0], "dw": dilation[1], "pt": pad[0], "pl": pad[1],
        **steps("x", x), **steps("y", y),
    }  # fmt: skip


def out_size(size: Pair, kernel: Pair, stride: Pair, dilation: Pair, pad: Pair) -> Pair:
    """With the same padding on both sides."""
    h, w = ((size[d] + 2 * pad[d] - (kernel[d] - 1) * dilation[d] - 1) // stride[d] + 1 for d in range(2))
    return h, w


def compare(
    x: Array, kernel: Pair, stride: Pair = (1, 1), dilation: Pair = (1, 1), pad: Pair = (0, 0),
    bias: bool = True, gap: int = 0, out: Pair | None = None,
) -> None:  # fmt: skip
    c = x.shape[3]
    w = RNG.standard_normal((c, 1, *kernel)).astype(np.float32)
    b = RNG.standard_normal(c).astype(np.float32) if bias else None
    out = out or out_size(x.shape[1:3], kernel, stride, dilation, pad)
    y = image(x.shape[0], *out, c, gap)
    wanted = reference(x, w, b, out, stride, dilation, pad)
    problem = fields(x, y, w, stride, dilation, pad)
    must = SIMD if c % 16 in range(1, 9) else (*SIMD, "avx512")
    for name in run_everywhere("depthwise", problem, {"x": x, "w": w, "bias": b, "y": y}, must):
        assert_close(y, wanted, 0, 2e-6, name)
        assert gaps_untouched(y), name


@pytest.mark.parametrize("c", [2, 3, 5, 7, 8, 9, 13, 16, 17, 24, 31, 48])
def test_channel_tails(c: int) -> None:
    compare(image(2, 6, 9, c), (3, 3), pad=(1, 1))


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 2), (3, 3)])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (1, 1), (2, 2), (7, 7), (3, 5), (5, 1), (1, 3), (9, 4)])
@pytest.mark.parametrize("c", [16, 12])
def test_windows_and_strides(c: int, kernel: Pair, stride: Pair) -> None:
    compare(image(1, 13, 21, c), kernel, stride, pad=(kernel[0] // 2, kernel[1] // 2))


@pytest.mark.parametrize("width", range(1, 20))
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5)])
def test_every_width_of_a_row(width: int, kernel: Pair) -> None:
    compare(image(1, 4, width, 16), kernel, pad=(kernel[0] // 2, kernel[1] // 2))
    compare(image(1, 4, width, 8), kernel, (2, 2), pad=(kernel[0] // 2, kernel[1] // 2))


@pytest.mark.parametrize("dilation", [(2, 2), (1, 3), (4, 1)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1)])
def test_dilation(dilation: Pair, stride: Pair) -> None:
    compare(image(1, 12, 15, 20), (3, 3), stride, dilation, pad=dilation)


@pytest.mark.parametrize(("c", "width"), [(512, 14), (512, 9), (256, 33), (504, 7)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_pixels_a_power_of_two_apart(c: int, width: int, stride: Pair) -> None:
    compare(image(2, 9, width, c), (3, 3), stride, pad=(1, 1))
    compare(image(1, 9, width, 500, gap=12), (5, 5), stride, (2, 1), pad=(4, 2))


@pytest.mark.parametrize(("c", "size"), [(24, (70, 130)), (512, (30, 33)), (12, (9, 4000))])
def test_images_larger_than_a_cache(c: int, size: Pair) -> None:
    compare(image(2, *size, c), (3, 3), pad=(1, 1))
    compare(image(1, *size, c), (3, 3), (2, 2), pad=(1, 0))
    compare(image(1, *size, c), (5, 1), (4, 1), (2, 1), pad=(5, 0))


def test_windows_that_miss_the_image_give_the_bias() -> None:
    compare(image(1, 2, 3, 16), (3, 3), pad=(6, 5), out=(14, 17))
    compare(image(1, 2, 3, 11), (3, 3), (2, 2), (3, 3), pad=(9, 8), out=(8, 9))


@pytest.mark.parametrize("c", [8, 16])
def test_gaps_between_pixels_and_no_bias(c: int) -> None:
    compare(image(2, 7, 7, c, gap=3), (3, 3), pad=(1, 1), bias=False, gap=5)


@pytest.mark.parametrize("act", [NONE, RELU, CLIP, TANH, HARD_SWISH])
@pytest.mark.parametrize("c", [8, 13, 16])
def test_activations(act: int, c: int) -> None:
    p0, p1 = {CLIP: (-0.5, 1.25), HARD_SWISH: (1 / 6, 0.5)}.get(act, (0.0, 0.0))
    x, y = image(1, 5, 10, c), image(1, 5, 10, c)
    w = RNG.standard_normal((c, 1, 3, 3)).astype(np.float32)
    v = reference(x, w, None, (5, 10), (1, 1), (1, 1), (1, 1))
    wanted = {
        NONE: v, RELU: np.maximum(v, 0), CLIP: np.clip(v, p0, p1), TANH: np.tanh(v),
        HARD_SWISH: v * np.clip(v / 6 + 0.5, 0, 1),
    }[act]  # fmt: skip
    problem = fields(x, y, w, (1, 1), (1, 1), (1, 1)) | {"act": act, "act_p0": p0, "act_p1": p1}
    for name in run_everywhere("depthwise", problem, {"x": x, "w": w, "y": y}):
        assert_close(y, wanted, 0, 2e-6, name)


@pytest.mark.parametrize("c", [8, 16])
def test_nan_and_infinity_reach_only_their_windows(c: int) -> None:
    x, y = image(1, 6, 12, c), image(1, 6, 12, c)
    x[0, 2, 3, 1], x[0, 4, 11, 5] = np.nan, np.inf
    w = np.abs(RNG.standard_normal((c, 1, 3, 3))).astype(np.float32)
    wanted = reference(x, w, None, (6, 12), (1, 1), (1, 1), (1, 1))
    assert np.isnan(wanted).sum() == 9 and np.isinf(wanted).sum() == 6
    for act in (NONE, RELU):
        problem = fields(x, y, w, (1, 1), (1, 1), (1, 1)) | {"act": act}
        for name in run_everywhere("depthwise", problem, {"x": x, "w": w, "y": y}, SIMD):
            assert_close(y, np.maximum(wanted, 0) if act else wanted, 1e-5, 2e-6, name)


@pytest.mark.parametrize("change", [
    {"c": 9}, {"ih": 6}, {"iw": 6}, {"oh": 6}, {"ow": 6}, {"kh": 4}, {"kw": 4}, {"n": 2}, {"n": -1}, {"sh": 0},
    {"dw": 0}, {"pt": -1}, {"x_row": 48}, {"y_pixel": 0}, {"y_row": 41}, {"act": 99}, {"act": -1}, {"kh": 1 << 40},
    {"n": 1 << 31, "oh": 1 << 31, "c": 0, "y_image": 1}, {"oh": 1 << 31, "y_row": 1 << 40},
])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, y, w = image(1, 5, 5, 8), image(1, 5, 5, 8), np.zeros((8, 1, 3, 3), np.float32)
    good = fields(x, y, w, (1, 1), (1, 1), (1, 1))
    operands = {"x": x, "w": w, "bias": np.zeros(8, np.float32), "y": y}
    check("depthwise", good, operands)
    with pytest.raises(ValueError):
        check("depthwise", good | change, operands)
