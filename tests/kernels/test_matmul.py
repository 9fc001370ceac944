"""matmul: act(alpha a b + add) between computed operands of any strides."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, assert_close, check, run_everywhere, strides

SIMD = ("generic", "avx2", "avx512")


def random(rng: np.random.Generator, shape: tuple[int, ...], order: tuple[int, ...]) -> Array:
    """A random array whose dimensions lie in this order in memory, with a gap after the innermost."""
    dims = [shape[d] for d in order]
    dims[-1] += 1
    base = rng.standard_normal(dims, dtype=np.float32)[..., :-1]
    return base.transpose(np.argsort(order))


def problem_of(a: Array, b: Array, c: Array, add: Array | None, **more: float) -> dict[str, float]:
    p: dict[str, float] = {
        "batch0": c.shape[0], "batch1": c.shape[1], "m": c.shape[2], "n": c.shape[3], "k": a.shape[3], "alpha": 1.0,
    }  # fmt: skip
    for letter, t in (("a", a), ("b", b), ("c", c), ("d", add)):
        if t is not None:
            names = ["batch0", "batch1", "row", "col"][: 3 if letter == "c" else 4]
            p |= {f"{letter}_{name}": s for name, s in zip(names, strides(t), strict=False)}
    return {**p, **more}


PLAIN, HEADS, TRANSPOSED = (0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)


@pytest.mark.parametrize("orders", [(PLAIN, PLAIN), (HEADS, HEADS), (PLAIN, TRANSPOSED), (TRANSPOSED, PLAIN)])
@pytest.mark.parametrize(
    ("batch", "m", "n", "k"),
    [((1, 1), 1, 1, 1), ((2, 3), 1, 19, 12), ((1, 2), 2, 40, 7), ((1, 3), 7, 24, 33), ((2, 1), 50, 17, 5)],
)
def test_matches_the_definition(batch: tuple[int, int], m: int, n: int, k: int, orders: tuple) -> None:
    rng = np.random.default_rng(m * 100 + n)
    a, b = random(rng, (*batch, m, k), orders[0]), random(rng, (*batch, k, n), orders[1])
    c = random(rng, (*batch, m, n), HEADS)
    expected = 0.5 * (a.astype(np.float64) @ b.astype(np.float64))
    for kernel in run_everywhere("matmul", problem_of(a, b, c, None, alpha=0.5), {"a": a, "b": b, "c": c}, SIMD):
        assert_close(c, expected, 1e-5, 2e-6, kernel)


@pytest.mark.parametrize("shape", [(1, 1, 1, 20), (1, 1, 5, 20), (2, 3, 5, 1), (1, 3, 1, 1)])
@pytest.mark.parametrize("act", [0, 1, 4])
def test_broadcast_addend_and_activation(shape: tuple[int, ...], act: int) -> None:
    rng = np.random.default_rng(act)
    a, b = random(rng, (2, 3, 5, 6), PLAIN), random(rng, (1, 1, 6, 20), PLAIN)
    b = np.broadcast_to(b, (2, 3, 6, 20))
    add = np.broadcast_to(rng.standard_normal(shape, dtype=np.float32), (2, 3, 5, 20))
    c = random(rng, (2, 3, 5, 20), PLAIN)
    sums = a.astype(np.float64) @ b.astype(np.float64) + add
    expected = {0: sums, 1: np.maximum(sums, 0), 4: np.tanh(sums)}[act]
    operands = {"a": a, "b": b, "add": add, "c": c}
    for kernel in run_everywhere("matmul", problem_of(a, b, c, add, act=act), operands, SIMD):
        assert_close(c, expected, 1e-5, 2e-6, kernel)


@pytest.mark.parametrize(("m", "n"), [(1, 0), (0, 9), (5, 0)])
def test_an_empty_result_is_left_alone(m: int, n: int) -> None:
    a, b = np.ones((1, 2, m, 6), np.float32), np.ones((1, 2, 6, n), np.float32)
    c = np.ones((1, 2, m, n), np.float32)
    ran = set(run_everywhere("matmul", problem_of(a, b, c, None), {"a": a, "b": b, "c": c}, SIMD))
    assert "matmul_f32_generic" in ran


@pytest.mark.parametrize("m", [1, 4])
def test_nan_stays_in_its_row_and_column(m: int) -> None:
    a, b = np.ones((1, 1, m, 8), np.float32), np.ones((1, 1, 8, 21), np.float32)
    b[0, 0, 3, 5] = np.nan
    c = np.zeros((1, 1, m, 21), np.float32)
    for kernel in run_everywhere("matmul", problem_of(a, b, c, None), {"a": a, "b": b, "c": c}, SIMD):
        assert np.isnan(c[..., 5]).all(), kernel
        assert (np.delete(c, 5, axis=3) == 8).all(), kernel


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch0", -1), ("m", 5), ("n", 1 << 62), ("k", 1 << 31), ("a_row", 1 << 50), ("b_col", 9), ("c_batch1", 1 << 40)]
    + [("d_row", 77), ("act", 99)],
)
def test_a_problem_outside_its_operands_is_refused(field: str, value: int) -> None:
    a, b = np.zeros((1, 2, 4, 5), np.float32), np.zeros((1, 2, 5, 3), np.float32)
    c, add = np.zeros((1, 2, 4, 3), np.float32), np.zeros((1, 2, 4, 3), np.float32)
    operands = {"a": a, "b": b, "add": add, "c": c}
    check("matmul", problem_of(a, b, c, add), operands)
    with pytest.raises(ValueError, match="matmul"):
        check("matmul", {**problem_of(a, b, c, add), field: value}, operands)
