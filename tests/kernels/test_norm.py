"""norm: layer and RMS normalisation of rows."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, Step, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2", "avx512")


def rows_of(rng: np.random.Generator, rows: int, cols: int, gap: int = 0) -> Array:
    """Random rows with `gap` unused elements between them."""
    return rng.standard_normal((rows, cols + gap), dtype=np.float32)[:, :cols]


def reference(x: Array, scale: Array | None, bias: Array | None, rms: bool, epsilon: float) -> Array:
    v = x.astype(np.float64)
    mean = 0.0 if rms else v.mean(-1, keepdims=True)
    y = (v - mean) / np.sqrt(((v - mean) ** 2).mean(-1, keepdims=True) + epsilon)
    return y * (1.0 if scale is None else scale) + (0.0 if bias is None else bias)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 7), (3, 8), (5, 16), (4, 33), (3, 64), (7, 100), (2, 384)])
@pytest.mark.parametrize("present", [(), ("scale",), ("bias",), ("scale", "bias"), ("residual", "scale", "bias"),
                                     ("residual", "sum"), ("sum",)])  # fmt: skip
def test_matches_the_definition(rows: int, cols: int, rms: bool, present: tuple[str, ...]) -> None:
    rng = np.random.default_rng(rows * 1000 + cols)
    x, y = rows_of(rng, rows, cols, 3), rows_of(rng, rows, cols, 1)
    residual = rows_of(rng, rows, cols, 2) if "residual" in present else None
    total = rows_of(rng, rows, cols, 5) if "sum" in present else None
    scale = rng.standard_normal(cols, dtype=np.float32) if "scale" in present else None
    bias = rng.standard_normal(cols, dtype=np.float32) if "bias" in present else None
    problem = {
        "rows": rows, "cols": cols, "x_row": cols + 3, "r_row": cols + 2, "y_row": cols + 1, "s_row": cols + 5,
        "rms": int(rms), "epsilon": 1e-5,
    }  # fmt: skip
    v = x if residual is None else x + residual
    operands = {"x": x, "residual": residual, "scale": scale, "bias": bias, "y": y, "sum": total}
    for kernel in run_everywhere("norm", problem, operands, SIMD):
        assert_close(y, reference(v, scale, bias, rms, 1e-5), 1e-5, 2e-6, kernel)
        assert gaps_untouched(y), kernel
        if total is not None:
            assert np.array_equal(total, v) and gaps_untouched(total), kernel


def test_a_large_mean_loses_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 500), dtype=np.float32) + np.float32(1e4)
    y = np.empty_like(x)
    problem = {"rows": 3, "cols": 500, "x_row": 500, "y_row": 500, "epsilon": 0.0}
    for kernel in run_everywhere("norm", problem, {"x": x, "y": y}, SIMD):
        assert_close(y, reference(x, None, None, False, 0.0), 1e-3, 1e-3, kernel)


def test_nan_stays_in_its_row() -> None:
    x = np.ones((3, 20), np.float32)
    x[1, 17] = np.nan
    y = np.empty_like(x)
    problem = {"rows": 3, "cols": 20, "x_row": 20, "y_row": 20, "epsilon": 1e-3}
    for kernel in run_everywhere("norm", problem, {"x": x, "y": y}, SIMD):
        assert np.isnan(y[1]).all() and not np.isnan(y[[0, 2]]).any(), kernel


@pytest.mark.parametrize("residual", [False, True])
def test_in_place(residual: bool) -> None:
    rng = np.random.default_rng(2)
    x, r, y, total = (rows_of(rng, 6, 40) for _ in range(4))
    problem = {"rows": 6, "cols": 40, "x_row": 40, "r_row": 40, "y_row": 40, "s_row": 40, "epsilon": 1e-5}
    operands = {"x": x, "residual": r if residual else None, "y": y, "sum": total}
    v = x + r if residual else x
    for kernel in run_everywhere("norm", problem, operands, SIMD, in_place=True):
        assert_close(y, reference(v, None, None, False, 1e-5), 1e-5, 2e-6, kernel)
        assert np.array_equal(total, v), kernel
        places = Step("norm", problem, operands, in_place=True).places(kernel)
        assert places["y"] == places["x"] and places["sum"] != places["y"], kernel


def test_no_rows() -> None:
    x, y = np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32)
    problem = {"rows": 0, "cols": 4, "x_row": 4, "y_row": 4}
    assert list(run_everywhere("norm", problem, {"x": x, "y": y}, SIMD))


@pytest.mark.parametrize("change", [{"rows": 5}, {"cols": 9}, {"x_row": 9}, {"y_row": 9}, {"y_row": 0}, {"rows": -1},
                                    {"x_row": 1 << 62}, {"cols": 1 << 40}, {"x_row": -8}])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, y = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    good = {"rows": 4, "cols": 8, "x_row": 8, "y_row": 8}
    check("norm", good, {"x": x, "y": y})
    with pytest.raises(ValueError):
        check("norm", good | change, {"x": x, "y": y})
