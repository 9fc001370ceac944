"""pool: maxima and averages over windows, borders, ceil-mode overhang and channel tails."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2", "avx512")
RNG = np.random.default_rng(12)
MAX, AVERAGE = 0, 1
Pair = tuple[int, int]
Pads = tuple[int, int, int, int]  # top, left, bottom, right


def image(n: int, h: int, w: int, c: int, gap: int = 0) -> Array:
    return RNG.standard_normal((n, h, w, c + gap)).astype(np.float32)[..., :c]


def reference(
    x: Array, mode: int, out: Pair, kernel: Pair, stride: Pair, dilation: Pair, pads: Pads, pad: bool
) -> Array:
    n, ih, iw, c = x.shape
    y = np.empty((n, *out, c))
    for oy in range(out[0]):
        for ox in range(out[1]):
            rows = oy * stride[0] - pads[0] + np.arange(kernel[0]) * dilation[0]
            cols = ox * stride[1] - pads[1] + np.arange(kernel[1]) * dilation[1]
            padded = np.sum(rows < ih + pads[2]) * np.sum(cols < iw + pads[3])
            rows, cols = rows[(rows >= 0) & (rows < ih)], cols[(cols >= 0) & (cols < iw)]
            window = x[:, rows][:, :, cols].astype(np.float64).reshape(n, -1, c)
            if window.shape[1] == 0:
                y[:, oy, ox] = -np.inf if mode == MAX else 0
            elif mode == MAX:
                y[:, oy, ox] = window.max(1)
            else:
                y[:, oy, ox] = window.sum(1) / (padded if pad else window.shape[1])
    return y


def fields(
    x: Array, y: Array, mode: int, kernel: Pair, stride: Pair, dilation: Pair, pads: Pads, pad: bool
) -> dict[str, int]:
    def steps(name: str, a: Array) -> dict[str, int]:
        return {f"{name}_{what}": a.strides[d] // 4 for d, what in enumerate(("image", "row", "pixel"))}

    n, ih, iw, c = x.shape
    return {
        "mode": mode, "n": n, "ih": ih, "iw": iw, "c": c, "oh": y.shape[1], "ow": y.shape[2], "kh": kernel[0],
        "kw": kernel[1], "sh": stride[0], "sw": stride[1], "dh": dilation[0], "dw": dilation[1], "pt": pads[0],
        "pl": pads[1], "pb": pads[2], "pr": pads[3], "count_include_pad": int(pad), **steps("x", x), **steps("y", y),
    }  # fmt: skip


def compare(
    x: Array, mode: int, kernel: Pair, stride: Pair = (1, 1), dilation: Pair = (1, 1), pads: Pads = (0, 0, 0, 0),
    pad: bool = False, ceil: bool = False, gap: int = 0,
) -> None:  # fmt: skip
    h, w = (
        (x.shape[1 + d] + pads[d] + pads[2 + d] - (kernel[d] - 1) * dilation[d] - 1 + ceil * (stride[d] - 1))
        // stride[d]
        + 1
        for d in range(2)
    )
    y = image(x.shape[0], h, w, x.shape[3], gap)
    wanted = reference(x, mode, (h, w), kernel, stride, dilation, pads, pad)
    for name in run_everywhere("pool", fields(x, y, mode, kernel, stride, dilation, pads, pad), {"x": x, "y": y}, SIMD):
        assert_close(y, wanted, 0, 5e-7, name)
        assert gaps_untouched(y), name


@pytest.mark.parametrize("mode", [MAX, AVERAGE])
@pytest.mark.parametrize("c", [1, 2, 3, 7, 8, 9, 16, 24, 31, 33, 64, 100, 130, 300])
def test_channels(c: int, mode: int) -> None:
    compare(image(2, 5, 6, c), mode, (3, 2), (2, 1), pads=(1, 0, 1, 1), gap=c % 3)


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 3)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 3), (1, 4), (5, 2)])
def test_windows(kernel: Pair, stride: Pair, dilation: Pair, ceil: bool, pad: bool) -> None:
    pads = (kernel[0] // 2, kernel[1] // 2, (kernel[0] - 1) // 2, 0)
    for mode in (MAX, AVERAGE):
        compare(image(1, 11, 14, 12), mode, kernel, stride, dilation, pads, pad, ceil)


@pytest.mark.parametrize("size", [(7, 7), (1, 1), (32, 100)])
@pytest.mark.parametrize("c", [5, 64, 320])
def test_global(c: int, size: Pair) -> None:
    for mode in (MAX, AVERAGE):
        compare(image(1, *size, c, gap=1), mode, size)


def test_windows_without_a_pixel() -> None:
    for mode in (MAX, AVERAGE):
        compare(image(1, 3, 3, 9), mode, (2, 2), pads=(4, 3, 4, 3), pad=mode == AVERAGE)


@pytest.mark.parametrize("c", [3, 16])
def test_nan_and_infinity(c: int) -> None:
    x = image(1, 4, 6, c)
    x[0, 0, 0], x[0, 2, 2, 1], x[0, 1, 4], x[0, 3] = np.nan, np.nan, np.inf, -np.inf
    for mode in (MAX, AVERAGE):
        with np.errstate(invalid="ignore"):
            compare(x, mode, (2, 2))
            compare(x, mode, (1, 1), (2, 2))


@pytest.mark.parametrize("change", [
    {"mode": 2}, {"c": 5}, {"ih": 5}, {"iw": 5}, {"oh": 4}, {"ow": 4}, {"n": 2}, {"kh": 0}, {"sw": 0}, {"dh": 0},
    {"pt": -1}, {"pr": -1}, {"x_row": 17}, {"y_pixel": 0}, {"y_row": 13}, {"kh": 1 << 31, "kw": 1 << 31},
    {"n": 1 << 31, "oh": 1 << 31, "c": 0},
])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, y = image(1, 4, 4, 4), image(1, 3, 3, 4)
    good = fields(x, y, MAX, (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), False)
    check("pool", good, {"x": x, "y": y})
    with pytest.raises(ValueError):
        check("pool", good | change, {"x": x, "y": y})
