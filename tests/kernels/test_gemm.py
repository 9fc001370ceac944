"""gemm: act(a b + bias + residual) with constant b."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2", "avx512")
SIZES = [
    (1, 1, 1),
    (1, 64, 64),
    (1, 130, 37),
    (2, 17, 5),
    (3, 24, 9),
    (6, 16, 8),
    (7, 40, 33),
    (13, 8, 4),
    (49, 100, 20),
]
ACTIVATIONS = {
    0: lambda x: x,
    1: lambda x: np.maximum(x, 0),
    2: lambda x: np.clip(x, -0.5, 0.75),
    3: lambda x: 1 / (1 + np.exp(-x)),
    4: np.tanh,
    9: lambda x: x * np.clip(-0.5 * x + 0.75, 0, 1),
}


def rows_of(rng: np.random.Generator, rows: int, cols: int, gap: int = 0) -> Array:
    return rng.standard_normal((rows, cols + gap), dtype=np.float32)[:, :cols]


def fields(m: int, n: int, k: int, gap: int = 0, **more: float) -> dict[str, float]:
    return {"m": m, "n": n, "k": k, "a_row": k + gap, "c_row": n + gap, "r_row": n + 2 * gap, **more}


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_matches_the_definition(m: int, n: int, k: int, gap: int, transposed: int) -> None:
    rng = np.random.default_rng(m * 1000 + n)
    a, c = rows_of(rng, m, k, gap), rows_of(rng, m, n, gap)
    b = rng.standard_normal((n, k) if transposed else (k, n), dtype=np.float32)
    bias = rng.standard_normal(n, dtype=np.float32)
    expected = a.astype(np.float64) @ (b.T if transposed else b).astype(np.float64) + bias
    problem = fields(m, n, k, gap, b_transposed=transposed)
    for kernel in run_everywhere("gemm", problem, {"a": a, "b": b, "bias": bias, "c": c}, SIMD):
        assert_close(c, expected, 1e-5, 2e-6, kernel)
        assert gaps_untouched(c), kernel


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("act", ACTIVATIONS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 20, 7), (5, 24, 6), (8, 33, 12)])
def test_activation_and_residual(m: int, n: int, k: int, act: int, after: int) -> None:
    rng = np.random.default_rng(act)
    a, residual, c = rows_of(rng, m, k), rows_of(rng, m, n, 2), rows_of(rng, m, n, 1)
    b = rng.standard_normal((k, n), dtype=np.float32) / 2
    problem = {**fields(m, n, k), "c_row": n + 1, "r_row": n + 2, "act": act, "residual_after": after}
    problem |= {"act_p0": -0.5, "act_p1": 0.75}
    product = a.astype(np.float64) @ b.astype(np.float64)
    expected = ACTIVATIONS[act](product) + residual if after else ACTIVATIONS[act](product + residual)
    for kernel in run_everywhere("gemm", problem, {"a": a, "b": b, "residual": residual, "c": c}, SIMD):
        assert_close(c, expected, 1e-5, 2e-6, kernel)
        assert gaps_untouched(c), kernel


def test_no_terms_give_the_bias() -> None:
    a, b, c = np.zeros((3, 0), np.float32), np.zeros((0, 9), np.float32), np.zeros((3, 9), np.float32)
    bias = np.arange(9, dtype=np.float32)
    for kernel in run_everywhere("gemm", fields(3, 9, 0), {"a": a, "b": b, "bias": bias, "c": c}, SIMD):
        assert np.array_equal(c, np.broadcast_to(bias, c.shape)), kernel


@pytest.mark.parametrize("act", [0, 1, 2])
def test_nan_and_infinity_reach_their_row_only(act: int) -> None:
    a = np.ones((4, 8), np.float32)
    a[1, 3], a[2, 5] = np.nan, np.inf
    b, c = np.ones((8, 20), np.float32), np.zeros((4, 20), np.float32)
    problem = fields(4, 20, 8, act=act, act_p0=-100.0, act_p1=100.0)
    for kernel in run_everywhere("gemm", problem, {"a": a, "b": b, "c": c}, SIMD):
        assert np.isnan(c[1]).all(), kernel
        assert (c[2] == (100.0 if act == 2 else np.inf)).all(), kernel
        assert (c[[0, 3]] == 8).all(), kernel


@pytest.mark.parametrize(("m", "n", "k"), [(15, 1, 17), (32, 5, 15), (100, 9, 7), (301, 24, 11), (75, 40, 6)])
def test_the_lanes_do_not_change_the_order_of_a_sum(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, c = rows_of(rng, m, k), rows_of(rng, m, n)
    b = rng.standard_normal((k, n), dtype=np.float32)
    for kernel in run_everywhere("gemm", fields(m, n, k), {"a": a, "b": b, "c": c}, SIMD):  # on one lane and on two
        assert_close(c, a.astype(np.float64) @ b, 1e-5, 2e-6, kernel)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (3, 0, 5), (1, 0, 5), (40, 0, 5)])
def test_an_empty_result_is_left_alone(m: int, n: int, k: int) -> None:
    a, b, c = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.ones((m, n), np.float32)
    ran = set(run_everywhere("gemm", fields(m, n, k), {"a": a, "b": b, "c": c}, SIMD))
    assert "gemm_f32_generic" in ran


def test_weights_of_any_alignment_and_offset() -> None:
    rng = np.random.default_rng(3)
    a, c = rows_of(rng, 2, 5), rows_of(rng, 2, 3)
    memory = rng.standard_normal(16, dtype=np.float32)
    b = memory[1:].reshape(5, 3)
    for kernel in run_everywhere("gemm", fields(2, 3, 5), {"a": a, "b": b, "c": c}, SIMD):
        assert_close(c, a.astype(np.float64) @ b, 1e-5, 2e-6, kernel)


@pytest.mark.parametrize(
    ("field", "value"),
    [("m", -1), ("m", 5), ("n", 1 << 62), ("k", 1 << 31), ("k", 6), ("a_row", 1 << 50), ("c_row", 2), ("r_row", 99)]
    + [("act", -1), ("act", 99)],
)
def test_a_problem_outside_its_operands_is_refused(field: str, value: int) -> None:
    a, b, c = np.zeros((4, 5), np.float32), np.zeros((5, 3), np.float32), np.zeros((4, 3), np.float32)
    operands = {"a": a, "b": b, "residual": c.copy(), "c": c}
    check("gemm", fields(4, 3, 5), operands)
    with pytest.raises(ValueError, match="gemm"):
        check("gemm", {**fields(4, 3, 5), field: value}, operands)
