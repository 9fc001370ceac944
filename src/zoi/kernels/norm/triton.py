"""RMSNorm in Triton: y = x / sqrt(mean(x^2) + 1e-6) * weight, a row a program."""

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


@kernel(definition="rmsnorm", name="rmsnorm_triton", arch=80, configs=_configs, grid=lambda w, c, machine: (w["rows"],))
@triton.jit
def rmsnorm_triton(x, weight, y, columns, stride_x_0, stride_y_0, BLOCK: tl.constexpr):
    """Reads a row once."""
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * stride_x_0 + at, mask=inside, other=0.0).to(tl.float32)
    by = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-6)
    tl.store(y + row * stride_y_0 + at, (value * factor * by).to(y.dtype.element_ty), mask=inside)


SOLUTIONS = (rmsnorm_triton,)
