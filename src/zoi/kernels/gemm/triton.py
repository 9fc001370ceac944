"""GEMM in Triton: the portable one, for Ampere and later."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from zoi.kernels.registry import Config, Machine, Workload, ceil_div, kernel


def _configs(w: Workload, machine: Machine) -> Sequence[Config]:
    plain = not w.option("activation") and not w.option("bias") and w.option("scale", 1.0) == 1.0
    if w.dtype not in ("bf16", "f16") or not plain:
        return ()
    shapes: tuple[tuple[int, int, int, int, int], ...]
    if w["m"] <= 64:
        shapes = ((16 if w["m"] <= 16 else 64, 64, 128, 4, 4), (16 if w["m"] <= 16 else 64, 32, 256, 4, 3))
    elif machine.capability < 90:
        shapes = ((128, 128, 32, 8, 3), (64, 64, 32, 4, 4))
    else:
        shapes = ((128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 4, 3), (64, 64, 64, 4, 5))
    return [{"BM": m, "BN": n, "BK": k, "num_warps": warps, "num_stages": stages} for m, n, k, warps, stages in shapes]


@kernel(
    definition="gemm",
    name="gemm_triton",
    arch=80,
    configs=_configs,
    grid=lambda w, c, machine: (ceil_div(w["m"], c["BM"]) * ceil_div(w["n"], c["BN"]),),
)
@triton.jit
def gemm_triton(
    a, b, c, m, n, k, stride_a_0, stride_b_0, stride_c_0, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """A tile of C; tiles go in bands of eight rows of tiles, so that the L2 keeps their operands."""
    tile = tl.program_id(0)
    high, wide = tl.cdiv(m, BM), tl.cdiv(n, BN)
    band = tile // (8 * wide)
    size = tl.minimum(high - band * 8, 8)
    row = band * 8 + (tile % (8 * wide)) % size
    column = (tile % (8 * wide)) // size
    rows, columns, depth = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    at_a = a + (rows % m)[:, None].to(tl.int64) * stride_a_0 + depth[None, :]
    at_b = b + (columns % n)[None, :].to(tl.int64) * stride_b_0 + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, k, BK):
        x = tl.load(at_a, mask=depth[None, :] < k - first, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < k - first, other=0.0)
        acc = tl.dot(x, y, acc)
        at_a += BK
        at_b += BK
    to = c + rows[:, None].to(tl.int64) * stride_c_0 + columns[None, :]
    tl.store(to, acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


SOLUTIONS = (gemm_triton,)
