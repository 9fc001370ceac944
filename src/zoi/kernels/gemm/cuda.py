"""GEMM in CUDA C++: records of the kernels in this room."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zoi.device.cuda.arrays import BYTES, Array
from zoi.kernels.registry import Arrays, Build, Config, Machine, Workload, ceil_div, cuda, parameter

_TYPES = {"bf16": "Bf16", "f16": "F16", "e4m3": "E4m3"}
_ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "silu": 3}
_SHARED = 232448


def _configs(w: Workload, machine: Machine) -> Sequence[Config]:
    bytes_ = BYTES[w.dtype]
    if w.dtype not in _TYPES or w["k"] * bytes_ % 16 or w["n"] % 8:
        return ()
    large = w["m"] * w["n"] * w["k"] > 1 << 38
    found = []
    for columns in (256, 192, 128, 64):
        for cluster in (2, 1):
            tiles = ceil_div(w["m"], 128 * cluster) * ceil_div(w["n"], columns)
            slots = machine.multiprocessors // cluster
            # Waves of whole tiles, each as long as its columns; a narrow tile feeds the tensor cores worse. Sharing B
            # pays only where the product is so large that power is the limit.
            cost = ceil_div(tiles, slots) * (columns + 24) * (1.0 if (cluster == 2) == large else 1.02)
            if w["m"] <= 128 and cluster == 2:
                continue
            slices = 2 if columns % 128 == 0 else 1
            stages = (_SHARED - 2048 - 2 * slices * 8192) // ((128 + columns) * 128)
            found.append(
                (cost, {"columns": columns, "stages": min(stages, 8), "cluster": cluster, "band": 8 // cluster})
            )
    return [config for _, config in sorted(found, key=lambda item: item[0])]


def matrix_map(a: Array, rows: int, columns: int) -> bytes:
    """A tensor map of a matrix with contiguous rows, in boxes of so many rows and columns."""
    from zoi import _cuda

    return _cuda.tensor_map(a.dtype, a.pointer, a.shape[::-1], a.byte_strides()[:1], (columns, rows))


@cuda(
    name="gemm_sm90",
    definition="gemm",
    arch=90,
    exact_arch=True,
    configs=_configs,
    source=Path(__file__).with_name("cuda_sm90.cuh"),
)
def gemm_sm90(w: Workload, config: Config, machine: Machine) -> Build:
    """Hopper: persistent tiles of 128 rows, copies by one warp, wgmma by two warpgroups, B shared by two blocks."""
    columns, stages, cluster = config["columns"], config["stages"], config["cluster"]
    slices = 2 if columns % 128 == 0 else 1
    row_tiles, column_tiles = ceil_div(w["m"], 128 * cluster), ceil_div(w["n"], columns)
    depth = 128 // BYTES[w.dtype]

    def pack(arrays: Arrays, scratch: int) -> list[bytes]:
        boxes = (("a", 128, depth), ("b", columns // cluster, depth), ("c", 64, 64))
        maps = [matrix_map(arrays[name], rows, wide) for name, rows, wide in boxes]
        sizes = (w["m"], w["n"], w["k"], row_tiles, column_tiles, config["band"])
        bias = arrays["bias"].pointer if "bias" in arrays else 0
        return [*maps, parameter("6ifQ", *sizes, float(w.option("scale", 1.0)), bias)]

    return Build(
        defines={
            "ZOI_TYPE": _TYPES[w.dtype],
            "ZOI_N": columns,
            "ZOI_STAGES": stages,
            "ZOI_CLUSTER": cluster,
            "ZOI_ACTIVATION": _ACTIVATIONS[w.option("activation")],
        },
        entry="gemm",
        grid=(cluster * min(row_tiles * column_tiles, machine.multiprocessors // cluster), 1, 1),
        threads=384,
        shared=stages * (128 + columns) * 128 + 2 * slices * 8192 + 2048,
        cluster=cluster,
        pack=pack,
    )


def _few(w: Workload, machine: Machine) -> Sequence[Config]:
    if w.dtype not in ("bf16", "f16") or w["m"] > 64 or w["k"] % 8 or w.option("activation"):
        return ()
    tiles, steps, slots = ceil_div(w["n"], 128), ceil_div(w["k"], 128), 2 * machine.multiprocessors
    found = {}
    for splits in range(1, min(7 if machine.capability >= 90 else 32, steps) + 1):
        share = ceil_div(steps, splits)
        real = ceil_div(steps, share)
        # Waves of blocks, each with a start and an end worth about three steps, and the parts to be added. Clusters of
        # eight find too few places.
        found[real] = ceil_div(tiles * real, slots) * (share + 3) + 0.05 * real
    return [{"splits": splits} for splits in sorted(found, key=lambda s: found[s])[:4]]


@cuda(
    name="gemm_few_sm80",
    definition="gemm",
    arch=80,
    configs=_few,
    source=Path(__file__).with_name("cuda_small.cuh"),
)
def gemm_few_sm80(w: Workload, config: Config, machine: Machine) -> Build:
    """Few rows of A: weights go straight into the fragments of mma.sync, K is split over blocks."""
    tokens = next(size for size in (8, 16, 32, 64) if w["m"] <= size)
    tiles, steps = ceil_div(w["n"], 128), ceil_div(w["k"], 128)
    share = ceil_div(steps, config["splits"])
    splits = ceil_div(steps, share)
    cluster = splits if machine.capability >= 90 else 1
    parts = tiles * splits * tokens * 128 * 4 if splits > cluster else 0

    def pack(arrays: Arrays, scratch: int) -> list[bytes]:
        bias = arrays["bias"].pointer if "bias" in arrays else 0
        pointers = (arrays["a"].pointer, arrays["b"].pointer, bias, arrays["c"].pointer, scratch, scratch + parts)
        sizes = (w["m"], w["n"], w["k"], splits, share * 128)
        return [parameter("6Q5if", *pointers, *sizes, float(w.option("scale", 1.0)))]

    return Build(
        defines={"ZOI_TYPE": _TYPES[w.dtype], "ZOI_TOKENS": tokens, "ZOI_CLUSTER": cluster},
        entry="gemm_small",
        grid=(splits, tiles, 1),
        cluster=cluster,
        threads=256,
        shared=tokens * 4 * 256,
        scratch=parts + tiles * 4,
        pack=pack,
    )


SOLUTIONS = (gemm_sm90, gemm_few_sm80)
