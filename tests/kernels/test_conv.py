"""conv: dense and grouped 2-D convolution over channels-last images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import Array, assert_close, check, gaps_untouched, run_everywhere, strides

SIMD = ("generic", "avx2", "avx512")
Fields = dict[str, "int | float"]


def image(rng: np.random.Generator, n: int, h: int, w: int, c: int, gap: int = 0) -> Array:
    return rng.standard_normal((n, h, w, c + gap), dtype=np.float32)[..., :c]


def reference(x: Array, w: Array, p: Fields) -> Array:
    """Sums over taps of shifted images, in float64; x [n, h, w, c], w [o, c, kh, kw]."""
    n, ih, iw, _ = x.shape
    oh, ow, groups, ic = p["oh"], p["ow"], p["groups"], p["ic"]
    y = np.zeros((n, oh, ow, w.shape[0]))
    reach_y, reach_x = oh * p["sh"] + p["kh"] * p["dh"], ow * p["sw"] + p["kw"] * p["dw"]
    padded = np.zeros((n, reach_y + ih + p["pt"], reach_x + iw + p["pl"], x.shape[3]))
    padded[:, p["pt"] : p["pt"] + ih, p["pl"] : p["pl"] + iw] = x
    for ky, kx in itertools.product(range(p["kh"]), range(p["kw"])):
        part = padded[:, ky * p["dh"] :: p["sh"], kx * p["dw"] :: p["sw"]][:, :oh, :ow]
        for g in range(groups):
            o = slice(g * p["oc"], (g + 1) * p["oc"])
            y[..., o] += part[..., g * ic : (g + 1) * ic] @ w[o, :, ky, kx].T.astype(np.float64)
    return y


def tolerance(kernel: str) -> float:
    """The stated error of a kernel relative to the largest output (conv/winograd.h)."""
    return 2e-5 if kernel.endswith("winograd4") else 4e-6


def problem_of(x: Array, y: Array, groups: int, kernel: tuple[int, int], **more: float) -> Fields:
    p: Fields = {
        "n": x.shape[0], "ih": x.shape[1], "iw": x.shape[2], "ic": x.shape[3] // groups, "oh": y.shape[1],
        "ow": y.shape[2], "oc": y.shape[3] // groups, "groups": groups, "kh": kernel[0], "kw": kernel[1],
        "sh": 1, "sw": 1, "dh": 1, "dw": 1, "pt": 0, "pl": 0,
    }  # fmt: skip
    for letter, t in (("x", x), ("y", y)):
        p |= dict(zip((f"{letter}_image", f"{letter}_row", f"{letter}_pixel"), strides(t)[:3], strict=True))
    return {**p, **more}


CASES = [
    # n, h, w, ic, oc, groups, (kh, kw), stride, dilation, pad
    (1, 5, 7, 8, 16, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 6, 6, 9, 24, 1, (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 9, 8, 3, 10, 1, (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 20, 21, 1, 5, 1, (7, 5), (1, 2), (1, 1), (3, 2)),
    (1, 4, 4, 17, 33, 1, (1, 1), (2, 2), (1, 1), (0, 0)),
    (1, 10, 9, 8, 8, 1, (3, 2), (1, 1), (2, 3), (2, 1)),
    (1, 6, 5, 12, 18, 3, (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 6, 5, 6, 4, 2, (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 30, 16, 7, 1, (1, 9), (1, 3), (1, 1), (0, 4)),
    (3, 14, 14, 16, 16, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 3, 3, 40, 100, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 7, 7, 2, 6, 1, (3, 3), (1, 1), (2, 2), (2, 2)),
    (1, 5, 6, 19, 41, 1, (3, 3), (1, 1), (1, 1), (0, 1)),
    (2, 13, 30, 16, 24, 1, (3, 3), (1, 1), (1, 1), (2, 2)),
    (1, 5, 19, 8, 8, 1, (3, 5), (1, 1), (1, 1), (1, 2)),
    (1, 4, 33, 3, 1, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 101, 1, 1, 1, (1, 32), (1, 2), (1, 1), (0, 0)),
    (1, 1, 1603, 4, 1, 1, (1, 4), (1, 1), (1, 1), (0, 0)),
    (1, 2, 1551, 4, 2, 1, (2, 4), (1, 1), (1, 1), (1, 3)),
    (1, 3, 500, 2, 3, 1, (2, 3), (1, 1), (1, 1), (0, 1)),
    (1, 1, 700, 1, 36, 1, (1, 16), (1, 3), (1, 1), (0, 0)),
    (1, 2, 1, 33, 17, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.parametrize("case", CASES)
def test_matches_the_definition(case: tuple, gap: int) -> None:
    n, h, w, ic, oc, groups, kernel, stride, dilation, pad = case
    rng = np.random.default_rng(h * 100 + w)
    out = [(s + 2 * p - d * (k - 1) - 1) // t + 1
           for s, p, d, k, t in zip((h, w), pad, dilation, kernel, stride, strict=True)]  # fmt: skip
    x, y = image(rng, n, h, w, ic, gap), image(rng, n, *out, oc, gap)
    weights = rng.standard_normal((oc, ic // groups, *kernel), dtype=np.float32)
    bias = rng.standard_normal(oc, dtype=np.float32)
    p = problem_of(x, y, groups, kernel, sh=stride[0], sw=stride[1], dh=dilation[0], dw=dilation[1])
    p |= {"pt": pad[0], "pl": pad[1]}
    expected = reference(x, weights, p) + bias
    for name in run_everywhere("conv", p, {"x": x, "w": weights, "bias": bias, "y": y}, SIMD):
        assert_close(y, expected, 1e-5, tolerance(name), name)
        assert gaps_untouched(y), name


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize(("act", "f"), [(1, lambda v: np.maximum(v, 0)), (9, lambda v: v * np.clip(v / 6 + 0.5, 0, 1))])
@pytest.mark.parametrize(("oc", "gap"), [(20, 1), (1, 0), (2, 0), (8, 0)])
def test_activation_and_residual(act: int, f, after: int, oc: int, gap: int) -> None:
    rng = np.random.default_rng(act)
    x, y, r = image(rng, 1, 6, 21, 8), image(rng, 1, 6, 21, oc, gap), image(rng, 1, 6, 21, oc, 4 * gap)
    weights = rng.standard_normal((oc, 8, 3, 3), dtype=np.float32) / 5
    p = problem_of(x, y, 1, (3, 3), pt=1, pl=1, act=act, act_p0=1 / 6, act_p1=0.5, residual_after=after)
    p |= dict(zip(("r_image", "r_row", "r_pixel"), strides(r)[:3], strict=True))
    product = reference(x, weights, p)
    expected = f(product) + r if after else f(product + r)
    for name in run_everywhere("conv", p, {"x": x, "w": weights, "residual": r, "y": y}, SIMD):
        assert_close(y, expected, 1e-5, tolerance(name), name)
        assert gaps_untouched(y), name


@pytest.mark.parametrize(("oc", "ow"), [(1, 21), (2, 33), (3, 50), (8, 19), (32, 9)])
def test_a_residual_may_share_the_memory_of_the_result(oc: int, ow: int) -> None:
    rng = np.random.default_rng(ow)
    x, y, r = image(rng, 1, 6, ow, 16), image(rng, 1, 6, ow, oc), image(rng, 1, 6, ow, oc)
    weights = rng.standard_normal((oc, 16, 3, 3), dtype=np.float32) / 5
    p = problem_of(x, y, 1, (3, 3), pt=1, pl=1, act=1)
    p |= dict(zip(("r_image", "r_row", "r_pixel"), strides(r)[:3], strict=True))
    expected = np.maximum(reference(x, weights, p) + r, 0)
    operands = {"x": x, "w": weights, "residual": r, "y": y}
    for name in run_everywhere("conv", p, operands, SIMD, in_place=True):
        assert_close(y, expected, 1e-5, tolerance(name), name)


@pytest.mark.parametrize(
    ("n", "oh", "ow", "oc"), [(0, 4, 4, 8), (1, 0, 4, 8), (1, 4, 0, 8), (1, 0, 0, 8), (1, 4, 4, 0)]
)
def test_an_empty_result_is_left_alone(n: int, oh: int, ow: int, oc: int) -> None:
    x, y = np.ones((n, 4, 4, 8), np.float32), np.ones((n, oh, ow, oc), np.float32)
    p = problem_of(x, y, 1, (3, 3), pt=1, pl=1)
    operands = {"x": x, "w": np.ones((oc, 8, 3, 3), np.float32), "y": y}
    assert "conv_f32_generic" in set(run_everywhere("conv", p, operands, SIMD))


def test_a_kernel_that_reaches_far_outside_the_image() -> None:
    rng = np.random.default_rng(7)
    x, y = image(rng, 1, 3, 3, 64), image(rng, 1, 2, 17, 4)
    weights = rng.standard_normal((4, 64, 5, 2), dtype=np.float32)
    far = 1 << 20
    p = problem_of(x, y, 1, (5, 2), sh=far, sw=far, dh=far)
    expected = np.zeros(y.shape)
    expected[0, 0, 0] = np.einsum("kc,ock->o", x[0, 0, :2].astype(np.float64), weights[:, :, 0])
    for name in run_everywhere("conv", p, {"x": x, "w": weights, "y": y}, SIMD):
        assert_close(y, expected, 1e-5, tolerance(name), name)


@pytest.mark.parametrize("size", [8, 32])
def test_winograd_keeps_its_error_on_deep_sums(size: int) -> None:
    rng = np.random.default_rng(size)
    x, y = image(rng, 1, size, size, 256) * 3 + 1, image(rng, 1, size, size, 32)
    weights = rng.standard_normal((32, 256, 3, 3), dtype=np.float32) / 50
    p = problem_of(x, y, 1, (3, 3), pt=1, pl=1)
    expected = reference(x, weights, p)
    for name in run_everywhere("conv", p, {"x": x, "w": weights, "y": y}, SIMD):
        assert np.abs(y - expected).max() <= tolerance(name) * np.abs(expected).max(), name


def test_nan_stays_within_its_window() -> None:
    x, y = np.ones((1, 9, 9, 8), np.float32), np.zeros((1, 9, 9, 16), np.float32)
    x[0, 4, 4, 2] = np.nan
    weights = np.ones((16, 8, 3, 3), np.float32)
    p = problem_of(x, y, 1, (3, 3), pt=1, pl=1)
    touched = np.zeros((9, 9), bool)
    touched[3:6, 3:6] = True
    for name in run_everywhere("conv", p, {"x": x, "w": weights, "y": y}, ("generic",)):
        if "winograd" in name:
            continue  # its tiles mix neighbours
        assert np.array_equal(np.isnan(y[0]).all(-1), touched), name
        assert np.array_equal(np.isnan(y[0]).any(-1), touched), name


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", 2), ("ih", 1 << 31), ("oh", -1), ("oc", 1 << 62), ("kh", 1 << 40), ("groups", 3), ("sh", 0), ("dh", -1)]
    + [("pt", -1), ("pt", 1 << 40), ("x_row", 1 << 40), ("y_pixel", 99), ("act", 77), ("ic", 1 << 60)],
)
def test_a_problem_outside_its_operands_is_refused(field: str, value: int) -> None:
    x, y = np.zeros((1, 4, 4, 8), np.float32), np.zeros((1, 4, 4, 8), np.float32)
    weights = np.zeros((8, 8, 3, 3), np.float32)
    p = problem_of(x, y, 1, (3, 3), pt=1, pl=1)
    check("conv", p, {"x": x, "w": weights, "y": y})
    with pytest.raises(ValueError, match="conv"):
        check("conv", {**p, field: value}, {"x": x, "w": weights, "y": y})
