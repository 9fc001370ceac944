"""Attention in CUDA C++: records of the kernels in this room."""

from __future__ import annotations

from collections.abc import Sequence
from math import e, log2
from pathlib import Path

from zoi.device.cuda.arrays import Array
from zoi.kernels.registry import Arrays, Build, Config, Machine, Workload, ceil_div, cuda, parameter

_TYPES = {"bf16": "Bf16", "f16": "F16"}
# Dimension of a head -> (rows of queries, keys of a block), the best guess first.
_TILES = {
    64: ((192, 128), (128, 128), (128, 176)),
    128: ((128, 160), (128, 128), (128, 176)),
    256: ((128, 80), (128, 64)),
}


def _configs(w: Workload, machine: Machine) -> Sequence[Config]:
    if w.dtype not in _TYPES or w["dim"] not in _TILES or w["heads"] % w["kv_heads"]:
        return ()
    tiles = _TILES[w["dim"]]
    short = [t for t in tiles if t[1] == 128]
    order = (
        [*short, *(t for t in tiles if t not in short)]
        if w["seq_k"] < (8192 if w.option("causal") else 2048)
        else tiles
    )
    return [{"rows": rows, "keys": keys} for rows, keys in order]


def head_map(a: Array, rows: int, dim: int) -> bytes:
    """A tensor map of [batch, row, head, column] as (64 columns, row, block of columns, head, batch)."""
    from zoi import _cuda

    batch, length, heads, _ = a.shape
    strides = a.byte_strides()
    sizes = (64, length, dim // 64, heads, batch)
    return _cuda.tensor_map(
        a.dtype, a.pointer, sizes, (strides[1], 128, strides[2], strides[0]), (64, rows, dim // 64, 1, 1)
    )


@cuda(
    name="attention_forward_sm90",
    definition="attention.forward",
    arch=90,
    exact_arch=True,
    configs=_configs,
    source=Path(__file__).with_name("cuda_sm90.cuh"),
)
def attention_forward_sm90(w: Workload, config: Config, machine: Machine) -> Build:
    """Hopper: copies by one warp, wgmma by two or three warpgroups that take turns."""
    rows, keys, dim = config["rows"], config["keys"], w["dim"]
    groups, causal = rows // 64, bool(w.option("causal"))
    q_bytes, tile = 64 * dim * 2, keys * dim * 2
    kept = 2 * (3 if dim == 64 else 2) * tile + 2048
    shared = kept + groups * q_bytes * (2 if 2 * groups * q_bytes + kept <= 232448 else 1)
    row_blocks, pairs = ceil_div(w["seq_q"], rows), w["batch"] * w["heads"]
    tiles = row_blocks * pairs
    # Heads worked on at a time. Without a mask all tiles are equally long, so one group of heads after the other reuses
    # its keys in the L2. With one, long rows of all heads go before short ones; where all rows are short that balances
    # itself, and as many heads as fit the L2 go together.
    group = w["heads"] // w["kv_heads"]
    fits = max(1, (24 << 20) // (w["seq_k"] * dim * 4)) * group
    section = min(pairs, group if not causal else fits if row_blocks <= 16 else pairs)

    def pack(arrays: Arrays, scratch: int) -> list[bytes]:
        maps = [head_map(arrays[name], box, dim) for name, box in (("q", 64), ("k", keys), ("v", keys))]
        sizes = (w["seq_q"], w["seq_k"], w["heads"], group, row_blocks, tiles, section, pairs)
        lse = arrays["lse"].pointer if "lse" in arrays else 0
        o = arrays["o"]
        return [*maps, parameter("8if2Q3q", *sizes, dim**-0.5 * log2(e), lse, o.pointer, o.strides[0], *o.strides[1:3])]

    return Build(
        defines={
            "ZOI_TYPE": _TYPES[w.dtype],
            "ZOI_D": dim,
            "ZOI_ROWS": rows,
            "ZOI_KEYS": keys,
            "ZOI_CAUSAL": int(causal),
        },
        entry="attention_forward",
        grid=(min(tiles, machine.multiprocessors), 1, 1),
        threads=(groups + 1) * 128,
        shared=shared,
        pack=pack,
    )


def _decode_configs(w: Workload, machine: Machine) -> Sequence[Config]:
    group = w["heads"] // w["kv_heads"]
    if w.dtype not in _TYPES or w["dim"] not in (64, 128) or group > 16 or w["seq_q"] != 1:
        return ()
    pairs, slots = w["batch"] * w["kv_heads"], machine.multiprocessors * (1 if w["dim"] == 128 else 2)
    # A ring of three stages asks for more shared memory than Ampere has.
    kinds = ((8, 3), (12, 2)) if machine.capability >= 90 else ((8, 2),)
    found: dict[tuple[int, int, int], float] = {}
    for warps, stages in kinds:
        steps = ceil_div(w["seq_k"], warps * 16)
        for splits in range(1, min(64, steps) + 1):
            share = ceil_div(steps, splits)
            real = ceil_div(steps, share)
            # Waves of blocks, each with a start and an end worth about three steps, and the parts to be added.
            cost = ceil_div(pairs * real, slots) * (share + 3) * warps / 8 + 0.04 * real
            found[warps, stages, real] = cost
    best = [sorted((k for k in found if k[:2] == kind), key=lambda k: found[k])[:2] for kind in kinds]
    return [{"warps": k[0], "stages": k[1], "splits": k[2]} for kind in best for k in kind]


@cuda(
    name="attention_decode_sm80",
    definition="attention.decode",
    arch=80,
    configs=_decode_configs,
    source=Path(__file__).with_name("cuda_decode.cuh"),
)
def attention_decode_sm80(w: Workload, config: Config, machine: Machine) -> Build:
    """One query row: keys and values go straight into the fragments of mma.sync, keys are split over blocks."""
    dim, group, pairs = w["dim"], w["heads"] // w["kv_heads"], w["batch"] * w["kv_heads"]
    warps, stages = config["warps"], config["stages"]
    unit = warps * 16
    steps = ceil_div(w["seq_k"], unit)
    share = ceil_div(steps, config["splits"])
    splits = ceil_div(steps, share)
    parts = pairs * splits * group * (dim + 2) * 4

    def pack(arrays: Arrays, scratch: int) -> list[bytes]:
        k, v = arrays["k"], arrays["v"]
        pointers = (arrays["q"].pointer, k.pointer, v.pointer, arrays["o"].pointer, scratch, scratch + parts)
        strides = [a.strides[axis] for a in (k, v) for axis in (0, 1, 2)]
        return [parameter("6Q6q3if", *pointers, *strides, w["seq_k"], splits, share * unit, dim**-0.5 * log2(e))]

    return Build(
        defines={
            "ZOI_TYPE": _TYPES[w.dtype],
            "ZOI_D": dim,
            "ZOI_GROUP": group,
            "ZOI_WARPS": warps,
            "ZOI_STAGES": stages,
        },
        entry="attention_decode",
        grid=(w["kv_heads"], splits, w["batch"]),
        threads=warps * 32,
        shared=warps * max(ceil_div(group, 8) * 8 * (dim + 2) * 4, stages * 64 * dim),
        scratch=parts + pairs * 4,
        pack=pack,
    )


SOLUTIONS = (attention_forward_sm90, attention_decode_sm80)
