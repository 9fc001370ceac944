"""resize: tables of 1, 2 and 4 taps, channel tails, clamped indices and taps of weight 0."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2", "avx512")
RNG = np.random.default_rng(15)
Table = tuple[Array, Array]


def image(n: int, h: int, w: int, c: int, gap: int = 0) -> Array:
    return RNG.standard_normal((n, h, w, c + gap)).astype(np.float32)[..., :c]


def table(size: int, out: int, taps: int) -> Table:
    index = RNG.integers(-2, size + 2, (out, taps)).astype(np.int32)
    weight = RNG.standard_normal((out, taps)).astype(np.float32)
    if taps == 1:
        weight[:] = 1
    weight[RNG.random((out, taps)) < 0.2] = 0
    return index, weight


def matrix(t: Table, size: int) -> Array:
    """The [out, size] matrix that a table stands for."""
    m = np.zeros((t[0].shape[0], size))
    for o, (index, weight) in enumerate(zip(*t, strict=True)):
        for i, w in zip(index.clip(0, size - 1), weight, strict=True):
            m[o, i] += w
    return m


def fields(x: Array, y: Array, taps: int) -> dict[str, int]:
    def steps(name: str, a: Array) -> dict[str, int]:
        return {f"{name}_{what}": a.strides[d] // 4 for d, what in enumerate(("image", "row", "pixel"))}

    n, ih, iw, c = x.shape
    return {
        "taps": taps, "n": n, "ih": ih, "iw": iw, "c": c, "oh": y.shape[1], "ow": y.shape[2], **steps("x", x),
        **steps("y", y),
    }  # fmt: skip


def operands(x: Array, h: Table, w: Table, y: Array) -> dict[str, Array | None]:
    return {"x": x, "h_index": h[0], "h_weight": h[1], "w_index": w[0], "w_weight": w[1], "y": y}


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("c", [1, 3, 8, 12, 16, 20, 40])
def test_tables(c: int, taps: int) -> None:
    x, y = image(2, 5, 7, c, gap=2), image(2, 9, 6, c, gap=1)
    h, w = table(5, 9, taps), table(7, 6, taps)
    wanted = np.einsum("oh,pw,nhwc->nopc", matrix(h, 5), matrix(w, 7), x.astype(np.float64))
    must = SIMD if taps <= 4 else ("generic",)
    for name in run_everywhere("resize", fields(x, y, taps), operands(x, h, w, y), must):
        assert_close(y, wanted, 0, 1e-6, name)
        assert gaps_untouched(y), name


@pytest.mark.parametrize("c", [1, 16, 21])
def test_nearest_doubles_exactly(c: int) -> None:
    x, y = image(1, 4, 5, c), image(1, 8, 10, c)
    h, w = ((np.arange(s)[:, None] // 2).astype(np.int32) for s in (8, 10))
    ones = [np.ones((s, 1), np.float32) for s in (8, 10)]
    for name in run_everywhere("resize", fields(x, y, 1), operands(x, (h, ones[0]), (w, ones[1]), y), SIMD):
        assert np.array_equal(y, x.repeat(2, 1).repeat(2, 2)), name


def test_taps_of_weight_0_take_no_part() -> None:
    x, y = image(1, 3, 3, 18), image(1, 3, 3, 18)
    x[0, 0], x[0, :, 0] = np.nan, np.inf
    index = np.array([[1, 0], [0, 2], [2, 0]], np.int32)
    weight = np.array([[1, 0], [0, 0.5], [0.25, 0]], np.float32)
    m = np.array([[0, 1, 0], [0, 0, 0.5], [0, 0, 0.25]])
    wanted = np.einsum("oh,pw,nhwc->nopc", m[:, 1:], m[:, 1:], x[:, 1:, 1:].astype(np.float64))
    for name in run_everywhere("resize", fields(x, y, 2), operands(x, (index, weight), (index, weight), y), SIMD):
        assert_close(y, wanted, 0, 1e-6, name)


@pytest.mark.parametrize("change", [
    {"taps": 3}, {"taps": 0}, {"c": 5}, {"ih": 4}, {"iw": 4}, {"ih": 0}, {"oh": 5}, {"ow": 5}, {"n": 2},
    {"x_row": 13}, {"y_pixel": 0}, {"y_row": 17}, {"n": 1 << 31, "oh": 1 << 31, "c": 0},
])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, y = image(1, 3, 3, 4), image(1, 4, 4, 4)
    t = table(3, 4, 2)
    check("resize", fields(x, y, 2), operands(x, t, t, y))
    with pytest.raises(ValueError):
        check("resize", fields(x, y, 2) | change, operands(x, t, t, y))
