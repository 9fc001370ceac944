"""Softmax of rows in Triton, a row a program."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from zoi.kernels.registry import Config, Machine, Workload, kernel


def _configs(w: Workload, machine: Machine) -> Sequence[Config]:
    block = 1 << (w["columns"] - 1).bit_length()
    if block > 65536 or w.dtype not in ("bf16", "f16", "f32"):
        return ()
    best = max(1, min(16, block // 1024))
    return [
        {"BLOCK": block, "num_warps": warps} for warps in dict.fromkeys((best, min(16, best * 2), max(1, best // 2)))
    ]


@kernel(definition="softmax", name="softmax_triton", arch=80, configs=_configs, grid=lambda w, c, machine: (w["rows"],))
@triton.jit
def softmax_triton(x, y, columns, stride_x_0, stride_y_0, BLOCK: tl.constexpr):
    """Reads a row once."""
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * stride_x_0 + at, mask=inside, other=float("-inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * stride_y_0 + at, (power / tl.sum(power, 0)).to(y.dtype.element_ty), mask=inside)


SOLUTIONS = (softmax_triton,)
