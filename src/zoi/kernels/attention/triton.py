"""Attention in Triton: the portable one, for Ampere and later."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from zoi.kernels.registry import Config, Machine, Workload, ceil_div, kernel


def _configs(w: Workload, machine: Machine) -> Sequence[Config]:
    if w.dtype not in ("bf16", "f16") or w["dim"] not in (64, 128, 256):
        return ()
    shapes: tuple[tuple[int, int, int, int], ...]
    if w["dim"] == 256:
        shapes = ((128, 64, 8, 2), (64, 64, 4, 2))
    else:
        shapes = ((128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (128, 128, 8, 3))
    if machine.capability < 90:
        shapes = ((128, 64, 8, 2), (64, 64, 4, 2)) if w["dim"] < 256 else ((64, 32, 4, 2),)
    return [{"BM": m, "BN": n, "num_warps": warps, "num_stages": stages} for m, n, warps, stages in shapes]


@kernel(
    definition="attention.forward",
    name="attention_forward_triton",
    arch=80,
    configs=_configs,
    grid=lambda w, c, machine: (ceil_div(w["seq_q"], c["BM"]), w["heads"], w["batch"]),
)
@triton.jit
def attention_forward_triton(
    q, k, v, o, lse, seq_q, seq_k, heads, kv_heads, scale,
    stride_q_0, stride_q_1, stride_q_2, stride_k_0, stride_k_1, stride_k_2,
    stride_v_0, stride_v_1, stride_v_2, stride_o_0, stride_o_1, stride_o_2,
    dim: tl.constexpr, causal: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head; keys in two passes, those that need a mask last."""
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    if causal:
        block = tl.num_programs(0) - 1 - block
    kv_head = head // (heads // kv_heads)
    rows, keys, columns = block * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, dim)
    q += batch * stride_q_0 + head * stride_q_2
    k += batch * stride_k_0 + kv_head * stride_k_2
    v += batch * stride_v_0 + kv_head * stride_v_2
    query = tl.load(q + rows[:, None] * stride_q_1 + columns[None, :], mask=rows[:, None] < seq_q, other=0.0)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, dim), tl.float32)
    log2e = scale * 1.4426950408889634
    end, clear = seq_k, seq_k // BN * BN
    if causal:
        end = tl.maximum(0, tl.minimum(seq_k, (block + 1) * BM + seq_k - seq_q))
        clear = tl.minimum(clear, tl.maximum(0, block * BM + seq_k - seq_q + 1) // BN * BN)
    for first in range(0, clear, BN):
        at = first + keys
        s = tl.dot(query, tl.load(k + at[None, :] * stride_k_1 + columns[:, None])) * log2e
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(top - new)
        total = total * factor + tl.sum(p, 1)
        acc = acc * factor[:, None]
        acc = tl.dot(p.to(query.dtype), tl.load(v + at[:, None] * stride_v_1 + columns[None, :]), acc)
        top = new
    for first in range(clear, end, BN):
        at = first + keys
        seen = (at[None, :] < seq_k) & (rows[:, None] >= 0)
        if causal:
            seen = seen & (at[None, :] <= rows[:, None] + seq_k - seq_q)
        s = tl.dot(query, tl.load(k + at[None, :] * stride_k_1 + columns[:, None], mask=at[None, :] < seq_k, other=0.0))
        s = tl.where(seen, s * log2e, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        base = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s - base[:, None])
        factor = tl.exp2(top - base)
        total = total * factor + tl.sum(p, 1)
        acc = acc * factor[:, None]
        value = tl.load(v + at[:, None] * stride_v_1 + columns[None, :], mask=at[:, None] < seq_k, other=0.0)
        acc = tl.dot(p.to(query.dtype), value, acc)
        top = new
    acc = tl.where(total[:, None] == 0.0, 0.0, acc / total[:, None])
    o += batch * stride_o_0 + head * stride_o_2
    tl.store(o + rows[:, None] * stride_o_1 + columns[None, :], acc.to(o.dtype.element_ty), mask=rows[:, None] < seq_q)
    sums = (top + tl.log2(total)) * 0.6931471805599453
    tl.store(lse + (batch * heads + head) * seq_q + rows, sums, mask=rows < seq_q)


SOLUTIONS = (attention_forward_triton,)
