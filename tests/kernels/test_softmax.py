"""softmax: over rows, over columns, with and without an additive mask."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, Step, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2", "avx512")
RNG = np.random.default_rng(3)


def reference(x: Array, scale: float, mask: Array | float, axis: int, log: bool) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        v = x.astype(np.float64) * scale + mask
        v = v - v.max(axis, keepdims=True)
        total = np.exp(v).sum(axis, keepdims=True)
        return v - np.log(total) if log else np.exp(v) / total


def rows(outer: int, axis: int, gap: int) -> Array:
    return (RNG.standard_normal((outer, axis + gap)) * 4).astype(np.float32)[:, :axis]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.125])
@pytest.mark.parametrize("axis", [1, 2, 7, 8, 9, 15, 16, 17, 32, 33, 100, 128, 1000])
def test_rows(axis: int, scale: float, log: bool) -> None:
    x, y = rows(5, axis, 2), rows(5, axis, 1)
    problem = {
        "outer": 5, "axis": axis, "inner": 1, "x_outer": axis + 2, "x_axis": 1, "y_outer": axis + 1, "y_axis": 1,
        "scale": scale, "log": int(log),
    }  # fmt: skip
    for kernel in run_everywhere("softmax", problem, {"x": x, "y": y}, SIMD):
        assert_close(y, reference(x, scale, 0.0, 1, log), 3e-6, 1e-6 if log else 0, kernel)
        assert gaps_untouched(y), kernel


@pytest.mark.parametrize(
    ("heads", "div", "mask_rows", "col"), [(3, 4, 3, 1), (3, 1, 4, 1), (1, 12, 1, 1), (3, 4, 3, 0)]
)
@pytest.mark.parametrize("axis", [5, 16, 45])
def test_masked_rows(axis: int, heads: int, div: int, mask_rows: int, col: int) -> None:
    outer = 12
    x, y = rows(outer, axis, 0), np.empty((outer, axis), np.float32)
    mask = np.where(RNG.random((mask_rows, axis if col else 1)) < 0.3, -np.inf, 1.5).astype(np.float32)
    mask[:, 0] = 0.25
    full = np.stack([mask[o // div % mask_rows] for o in range(outer)])
    problem = {
        "outer": outer, "axis": axis, "inner": 1, "x_outer": axis, "x_axis": 1, "y_outer": axis, "y_axis": 1,
        "scale": 0.5, "mask_div": div, "mask_rows": mask_rows, "mask_row": mask.shape[1], "mask_col": col,
    }  # fmt: skip
    for kernel in run_everywhere("softmax", problem, {"x": x, "mask": mask, "y": y}, SIMD):
        assert_close(y, reference(x, 0.5, full, 1, False), 3e-6, 0, kernel)
        assert np.all(y[np.broadcast_to(full, y.shape) == -np.inf] == 0), kernel


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("outer", "axis", "inner"), [(2, 3, 2), (1, 5, 8), (3, 4, 31), (2, 7, 64), (1, 21, 77), (2, 1, 5)]
)
def test_columns(outer: int, axis: int, inner: int, log: bool) -> None:
    x = (RNG.standard_normal((outer, axis + 1, inner + 3)) * 4).astype(np.float32)[:, :axis, :inner]
    y = np.empty((outer, axis + 2, inner + 1), np.float32)[:, :axis, :inner]
    problem = {
        "outer": outer, "axis": axis, "inner": inner, "x_outer": (axis + 1) * (inner + 3), "x_axis": inner + 3,
        "y_outer": (axis + 2) * (inner + 1), "y_axis": inner + 1, "scale": 0.7, "log": int(log),
    }  # fmt: skip
    for kernel in run_everywhere("softmax", problem, {"x": x, "y": y}, SIMD):
        assert_close(y, reference(x, 0.7, 0.0, 1, log), 3e-6, 1e-6 if log else 0, kernel)
        assert gaps_untouched(y), kernel


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize(("outer", "axis", "inner", "masked"), [(5, 77, 1, False), (5, 77, 1, True), (2, 9, 30, False)])
def test_in_place(outer: int, axis: int, inner: int, masked: bool, log: int) -> None:
    x, y = RNG.standard_normal((2, outer, axis, inner), dtype=np.float32)
    mask = RNG.standard_normal(axis, dtype=np.float32) if masked else None
    problem = {
        "outer": outer, "axis": axis, "inner": inner, "x_outer": axis * inner, "x_axis": inner, "y_outer": axis * inner,
        "y_axis": inner, "scale": 0.5, "log": log, "mask_div": 1, "mask_rows": 1, "mask_col": int(masked),
    }  # fmt: skip
    operands = {"x": x, "mask": mask, "y": y}
    wanted = reference(x, 0.5, mask[:, None] if mask is not None else 0.0, 1, bool(log))
    for kernel in run_everywhere("softmax", problem, operands, SIMD, in_place=True):
        assert_close(y, wanted, 3e-6, 1e-6 if log else 0, kernel)
        places = Step("softmax", problem, operands, in_place=True).places(kernel)
        assert places["y"] == places["x"], kernel


def test_strided_axis() -> None:
    x = RNG.standard_normal((6, 9), dtype=np.float32).T
    y = np.empty((6, 9), np.float32).T
    problem = {"outer": 9, "axis": 6, "inner": 1, "x_outer": 1, "x_axis": 9, "y_outer": 1, "y_axis": 9, "scale": 1.0}
    for kernel in run_everywhere("softmax", problem, {"x": x, "y": y}):
        assert_close(y, reference(x, 1.0, 0.0, 1, False), 3e-6, 0, kernel)


@pytest.mark.parametrize("inner", [1, 9])
def test_special_values(inner: int) -> None:
    x = np.zeros((6, 11, inner), np.float32)
    x[0] = -np.inf
    x[1, 3] = np.uint32(0x7FC0_01FF).view(np.float32)  # a NaN with a payload
    x[2, 10] = np.inf
    x[3, :10] = -np.inf
    x[4] = RNG.standard_normal((11, inner)) * 1e38
    y = np.empty_like(x)
    problem = {
        "outer": 6, "axis": 11, "inner": inner, "x_outer": 11 * inner, "x_axis": inner, "y_outer": 11 * inner,
        "y_axis": inner, "scale": 1.0,
    }  # fmt: skip
    for kernel in run_everywhere("softmax", problem, {"x": x, "y": y}, SIMD):
        assert_close(y, reference(x, 1.0, 0.0, 1, False), 3e-6, 0, kernel)
        assert np.isnan(y[:3]).all(), kernel


@pytest.mark.parametrize("change", [{"outer": 5}, {"axis": 9}, {"inner": 2}, {"x_axis": 2}, {"y_outer": 0},
                                    {"axis": -1}, {"mask_div": 0}, {"mask_rows": 0}, {"mask_rows": 3}, {"mask_row": 9},
                                    {"outer": 1 << 31, "axis": 1 << 31}])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, y, mask = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32), np.zeros((2, 8), np.float32)
    good = {
        "outer": 4, "axis": 8, "inner": 1, "x_outer": 8, "x_axis": 1, "y_outer": 8, "y_axis": 1, "scale": 1.0,
        "mask_div": 2, "mask_rows": 2, "mask_row": 8, "mask_col": 1,
    }  # fmt: skip
    check("softmax", good, {"x": x, "mask": mask, "y": y})
    with pytest.raises(ValueError):
        check("softmax", good | change, {"x": x, "mask": mask, "y": y})
