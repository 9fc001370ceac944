"""attention: softmax(scale q k^T + mask) v for every head."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, assert_close, check, run_everywhere, strides

SIMD = ("generic", "avx2", "avx512")


def reference(q: Array, k: Array, v: Array, mask: Array | None, scale: float) -> Array:
    """Heads first: [batch, heads, rows, columns]."""
    scores = scale * np.einsum("bhmd,bhnd->bhmn", q.astype(np.float64), k.astype(np.float64))
    scores = scores if mask is None else scores + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhmn,bhnd->bhmd", e / e.sum(-1, keepdims=True), v.astype(np.float64))


def problem_of(q: Array, k: Array, v: Array, y: Array, mask: Array | None, scale: float) -> dict[str, int | float]:
    fields: dict[str, int | float] = {
        "batch0": q.shape[0], "batch1": q.shape[1], "m": q.shape[2], "n": k.shape[2], "d": q.shape[3],
        "dv": v.shape[3], "scale": scale,
    }  # fmt: skip
    for name, array in (("q", q), ("k", k), ("v", v), ("y", y)):
        b0, b1, row, _ = strides(array)
        fields |= {f"{name}_batch0": b0, f"{name}_batch1": b1, f"{name}_row": row}
    if mask is not None:
        b0, b1, row, col = strides(mask)
        fields |= {"mask_batch0": b0, "mask_batch1": b1, "mask_row": row, "mask_col": col}
    return fields


def heads(rng: np.random.Generator, batch: int, count: int, rows: int, width: int) -> Array:
    """[batch, heads, rows, width] as interleaved heads of [batch, rows, heads * width + 3]."""
    flat = rng.standard_normal((batch, rows, count * width + 3), dtype=np.float32)[:, :, : count * width]
    return np.lib.stride_tricks.as_strided(
        flat, (batch, count, rows, width), (flat.strides[0], width * 4, flat.strides[1], 4)
    )


def masks(rng: np.random.Generator, kind: str, batch: int, count: int, m: int, n: int) -> Array | None:
    shape = {"keys": (batch, 1, 1, n), "causal": (1, 1, m, n), "rows": (batch, count, m, 1)}.get(kind)
    if shape is None:
        return None
    mask = rng.standard_normal(shape, dtype=np.float32)
    if kind == "causal":
        mask = np.where(np.tri(m, n, dtype=bool), np.float32(0), np.float32(-np.inf))[None, None]
    return np.broadcast_to(mask, (batch, count, m, n))


@pytest.mark.parametrize("mask", ["none", "keys", "causal", "rows"])
@pytest.mark.parametrize(
    ("batch", "count", "m", "n", "d", "dv"),
    [(1, 1, 1, 1, 1, 1), (2, 3, 7, 19, 20, 24), (1, 2, 32, 32, 64, 64), (1, 4, 49, 65, 32, 33), (1, 2, 5, 130, 8, 100)],
)
def test_matches_the_definition(batch: int, count: int, m: int, n: int, d: int, dv: int, mask: str) -> None:
    rng = np.random.default_rng(m * 1000 + n)
    q, k, v, y = (heads(rng, batch, count, r, w) for r, w in ((m, d), (n, d), (n, dv), (m, dv)))
    added = masks(rng, mask, batch, count, m, n)
    operands = {"q": q, "k": k, "v": v, "mask": added, "y": y}
    expected = reference(q, k, v, added, 0.3)
    for kernel in run_everywhere("attention", problem_of(q, k, v, y, added, 0.3), operands, SIMD):
        assert_close(y, expected, 1e-5, 2e-6, kernel)


def test_a_row_masked_everywhere_is_nan_and_alone() -> None:
    rng = np.random.default_rng(0)
    q, k, v, y = (heads(rng, 1, 1, r, 8) for r in (3, 5, 5, 3))
    mask = np.zeros((1, 1, 3, 5), np.float32)
    mask[0, 0, 1] = -np.inf
    operands = {"q": q, "k": k, "v": v, "mask": mask, "y": y}
    for kernel in run_everywhere("attention", problem_of(q, k, v, y, mask, 1.0), operands, SIMD):
        assert np.isnan(y[0, 0, 1]).all(), kernel
        assert np.isfinite(y[0, 0, [0, 2]]).all(), kernel


@pytest.mark.parametrize("operand", ["q", "k", "v", "y", "mask"])
def test_an_operand_too_small_is_refused(operand: str) -> None:
    rng = np.random.default_rng(0)
    arrays = {n: heads(rng, 2, 2, 4, 8) for n in "qkvy"}
    mask = np.zeros((2, 2, 4, 4), np.float32)
    problem = problem_of(arrays["q"], arrays["k"], arrays["v"], arrays["y"], mask, 1.0)
    operands = {**arrays, "mask": mask}
    check("attention", problem, operands)
    with pytest.raises(ValueError, match=operand):
        check("attention", {**problem, f"{operand}_batch0": 1 << 30}, operands)


def test_absurd_sizes_are_refused() -> None:
    x = np.zeros((1, 1, 2, 2), np.float32)
    problem = problem_of(x, x, x, x, None, 1.0)
    for field in ("batch0", "m", "n", "d", "dv"):
        for value in (-1, 1 << 31, 1 << 62):
            with pytest.raises(ValueError, match="step"):
                check("attention", {**problem, field: value}, {"q": x, "k": x, "v": x, "y": x.copy()})
