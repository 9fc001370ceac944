"""reduce: sums, extremes and the like over any dimensions of a strided operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from harness import Array, assert_close, check, dtype_code, padded, run_everywhere, strides

OPS = ["sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp", "arg_max", "arg_min"]
SIMD = ("generic", "avx2", "avx512")
REFERENCE: dict[str, Callable[[Array], Array]] = {
    "sum": lambda v: v.sum(-1), "mean": lambda v: v.mean(-1), "max": lambda v: v.max(-1), "min": lambda v: v.min(-1),
    "prod": lambda v: v.prod(-1), "l1": lambda v: np.abs(v).sum(-1), "l2": lambda v: np.sqrt((v * v).sum(-1)),
    "sum_square": lambda v: (v * v).sum(-1), "log_sum": lambda v: np.log(v.sum(-1)),
    "log_sum_exp": lambda v: np.log(np.exp(v).sum(-1)), "arg_max": lambda v: v.argmax(-1),
    "arg_min": lambda v: v.argmin(-1),
}  # fmt: skip
VECTOR_OPS = set(OPS[:9])


def problem(op: str, x: Array, axes: Sequence[int], select_last: bool = False) -> dict[str, Any]:
    steps = strides(x)
    kept = [d for d in range(x.ndim) if d not in axes]
    return {
        "op": OPS.index(op), "dtype": dtype_code(x), "select_last": int(select_last),
        "kept_dims": len(kept), "kept_shape": padded([x.shape[d] for d in kept], 6),
        "kept_stride": padded([steps[d] for d in kept], 6),
        "reduced_dims": len(axes), "reduced_shape": padded([x.shape[d] for d in axes], 6),
        "reduced_stride": padded([steps[d] for d in axes], 6),
    }  # fmt: skip


def reference(op: str, x: Array, axes: Sequence[int]) -> Array:
    kept = [d for d in range(x.ndim) if d not in axes]
    moved = x.transpose([*kept, *axes]).reshape([*[x.shape[d] for d in kept], -1])
    with np.errstate(all="ignore"):
        return np.asarray(REFERENCE[op](moved.astype(np.float64)))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("shape", "axes"), [
    ((5, 37), (1,)), ((37, 5), (0,)), ((3, 200), (1,)), ((4, 8, 70), (0, 2)), ((4, 8, 70), (1,)), ((9, 2, 16), (0, 1)),
    ((2500,), (0,)), ((7, 1), (1,)), ((1, 7), (0,)), ((3, 4, 5, 6), (1, 2)), ((3, 4, 5, 6), (0, 3)), ((65, 33), (0,)),
])  # fmt: skip
def test_matches_the_definition(op: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    if op.startswith("arg") and len(axes) > 1:
        pytest.skip("ArgMax and ArgMin reduce one dimension")
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal([*shape[:-1], shape[-1] + 3], dtype=np.float32)[..., : shape[-1]]
    if op in ("log_sum", "prod"):
        x[...] = np.abs(x) + 0.5 if op == "log_sum" else 1 + x / 50
    wanted = reference(op, x, axes)
    y = np.empty(wanted.shape, np.int64 if op.startswith("arg") else np.float32)
    vectors = op in VECTOR_OPS and (axes[-1] == x.ndim - 1 or x.ndim - 1 not in axes)
    for kernel in run_everywhere("reduce", problem(op, x, axes), {"x": x, "y": y}, SIMD if vectors else SIMD[:1]):
        assert_close(y, wanted, 2e-6, 1e-6 if op in ("sum", "mean", "log_sum_exp") else 0, kernel)


def test_nothing_is_reduced() -> None:
    x = np.random.default_rng(0).standard_normal((3, 21), dtype=np.float32)
    y = np.empty_like(x)
    for op in ("sum", "mean", "max", "l1"):
        for kernel in run_everywhere("reduce", problem(op, x, ()), {"x": x, "y": y}, SIMD):
            assert np.array_equal(y, np.abs(x) if op == "l1" else x), kernel


@pytest.mark.parametrize("axes", [(1,), (0,)])
def test_an_empty_reduction_is_the_identity(axes: tuple[int]) -> None:
    x = np.zeros((4, 0) if axes == (1,) else (0, 4), np.float32)
    identities = {"sum": 0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1, "l1": 0, "l2": 0, "sum_square": 0,
                  "log_sum": -np.inf, "log_sum_exp": -np.inf}  # fmt: skip
    y = np.empty(4, np.float32)
    for op, identity in identities.items():
        for kernel in run_everywhere("reduce", problem(op, x, axes), {"x": x, "y": y}):
            np.testing.assert_array_equal(y, np.full(4, identity, np.float32), f"{kernel} {op}")


@pytest.mark.parametrize("axes", [(1,), (0,)])
@pytest.mark.parametrize("at", [0, 5, 30, 39])
def test_extremes_keep_nan(at: int, axes: tuple[int]) -> None:
    x = np.random.default_rng(0).standard_normal((40, 40), dtype=np.float32)
    x[at, at] = np.nan
    y = np.empty(40, np.float32)
    for op in ("max", "min"):
        for kernel in run_everywhere("reduce", problem(op, x, axes), {"x": x, "y": y}, SIMD):
            np.testing.assert_array_equal(y, REFERENCE[op](x if axes == (1,) else x.T), f"{kernel} {op}")


def test_equals() -> None:
    x = np.float32([[1, 3, 3, 0, 0, 2], [np.nan, 1, 1, np.nan, 0, 0]])
    y = np.empty(2, np.int64)
    for op, last, wanted in (
        ("arg_max", 0, [1, 1]),
        ("arg_max", 1, [2, 2]),
        ("arg_min", 0, [3, 4]),
        ("arg_min", 1, [4, 5]),
    ):
        for kernel in run_everywhere("reduce", problem(op, x, (1,), bool(last)), {"x": x, "y": y}):
            assert y.tolist() == wanted, kernel


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (4, 6, 5)).astype(dtype)
    for op in ("sum", "max", "min", "prod", "l1", "sum_square"):
        wanted = reference(op, x, (1,))
        y = np.empty(wanted.shape, dtype)
        for kernel in run_everywhere("reduce", problem(op, x, (1,)), {"x": x, "y": y}):
            assert np.array_equal(y, wanted.astype(np.int64).astype(dtype)), f"{kernel} {op}"


def test_a_long_sum_stays_accurate() -> None:
    x = np.full(1 << 20, 0.1, np.float32)
    y = np.empty((), np.float32)
    for kernel in run_everywhere("reduce", problem("sum", x, (0,)), {"x": x, "y": y}, SIMD):
        assert_close(y, x.astype(np.float64).sum(), 5e-6, 0, kernel)


BAD = [{"op": 12}, {"op": -1}, {"dtype": 1}, {"kept_dims": 7}, {"reduced_dims": -1}, {"kept_shape": [5, 0, 0, 0, 0, 0]},
       {"reduced_shape": [9, 0, 0, 0, 0, 0]}, {"reduced_stride": [2, 0, 0, 0, 0, 0]}, {"dtype": 10},
       {"op": 10, "reduced_dims": 0}, {"op": 10}, {"kept_shape": [1 << 40, 0, 0, 0, 0, 0], "kept_stride": [0] * 6},
       {"reduced_shape": [-1, 0, 0, 0, 0, 0]}]  # fmt: skip


@pytest.mark.parametrize("change", BAD)
def test_refuses_what_leaves_its_memory(change: dict[str, Any]) -> None:
    x, y = np.zeros((4, 8), np.float32), np.zeros(4, np.float32)
    good = problem("sum", x, (1,))
    check("reduce", good, {"x": x, "y": y})
    with pytest.raises(ValueError):
        check("reduce", good | change, {"x": x, "y": y})
