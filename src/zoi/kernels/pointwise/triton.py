"""SwiGLU in Triton: y = silu(gate) * up, where x holds gate and up side by side."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from zoi.kernels.registry import Config, Machine, Workload, ceil_div, kernel


def _configs(w: Workload, machine: Machine) -> Sequence[Config]:
    return [{"BLOCK": block, "num_warps": warps} for block, warps in ((1024, 4), (2048, 4), (2048, 8), (4096, 8))]


@kernel(
    definition="swiglu",
    name="swiglu_triton",
    arch=80,
    configs=_configs,
    grid=lambda w, c, machine: (ceil_div(w["columns"], c["BLOCK"]), w["rows"]),
)
@triton.jit
def swiglu_triton(x, y, columns, stride_x_0, stride_y_0, BLOCK: tl.constexpr):
    """A piece of a row."""
    row, at = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    gate = tl.load(x + row * stride_x_0 + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * stride_x_0 + columns + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * stride_y_0 + at, (gate * tl.sigmoid(gate) * up).to(y.dtype.element_ty), mask=inside)


SOLUTIONS = (swiglu_triton,)
