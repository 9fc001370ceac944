"""The workloads that solutions are checked and timed on; each family's checks hold ragged, tiny and odd ones too."""

from __future__ import annotations

from zoi.kernels.registry import Workload


def attention(batch: int, seq: int, heads: int, dim: int, causal: bool, kv: int = 0, dtype: str = "bf16") -> Workload:
    """Self-attention with equal lengths."""
    axes = {"batch": batch, "seq_q": seq, "seq_k": seq, "heads": heads, "kv_heads": kv or heads, "dim": dim}
    return Workload("attention.forward", axes, dtype, {"causal": causal})


def decode(batch: int, length: int, heads: int = 32, kv: int = 8, dim: int = 128) -> Workload:
    """One query row over kept keys and values."""
    axes = {"batch": batch, "seq_q": 1, "seq_k": length, "heads": heads, "kv_heads": kv, "dim": dim}
    return Workload("attention.decode", axes)


def gemm(m: int, n: int, k: int, dtype: str = "bf16", **options: object) -> Workload:
    """C [m, n] = A [m, k] B [n, k]^T."""
    return Workload("gemm", {"m": m, "n": n, "k": k}, dtype, options)


def rows(definition: str, rows: int, columns: int) -> Workload:
    """An operator on rows."""
    return Workload(definition, {"rows": rows, "columns": columns})


def _attention_bench() -> list[Workload]:
    """Batch x seq = 16k, heads x dim = 2048."""
    found = [
        attention(16384 // seq, seq, 2048 // dim, dim, causal)
        for dim in (64, 128, 256)
        for causal in (False, True)
        for seq in (512, 2048, 8192, 16384)
    ]
    found += [attention(16384 // seq, seq, 16, 128, causal, kv=4) for causal in (False, True) for seq in (2048, 16384)]
    return [*found, attention(1, 16384, 16, 128, False, dtype="f16"), attention(1, 16384, 16, 128, True, dtype="f16")]


def _attention_odd(
    seq_q: int, seq_k: int, dim: int, causal: bool, heads: int = 2, kv: int = 1, batch: int = 2
) -> Workload:
    axes = {"batch": batch, "seq_q": seq_q, "seq_k": seq_k, "heads": heads, "kv_heads": kv, "dim": dim}
    return Workload("attention.forward", axes, "bf16", {"causal": causal})


BENCH: dict[str, list[Workload]] = {
    "attention": _attention_bench(),
    "decode": [
        decode(batch, length)
        for batch, length in ((1, 4096), (1, 32768), (8, 4096), (16, 8192), (64, 8192), (64, 2048))
    ],
    "gemm": [
        *(gemm(size, size, size) for size in (1024, 2048, 4096, 8192)),
        *(gemm(m, n, k) for m in (512, 2048, 8192) for n, k in ((4096, 4096), (28672, 4096), (4096, 14336))),
        *(gemm(size, size, size, "e4m3") for size in (1024, 2048, 4096, 8192)),
        *(gemm(m, n, k, "e4m3") for m in (512, 2048) for n, k in ((4096, 4096), (28672, 4096), (4096, 14336))),
    ],
    "small": [gemm(m, n, k) for m in (1, 8, 16, 64, 128) for n, k in ((4096, 4096), (28672, 4096), (4096, 14336))],
    "rows": [
        rows(name, count, columns)
        for name in ("rmsnorm", "softmax", "swiglu")
        for count, columns in ((16384, 4096), (4096, 8192), (65536, 1024))
    ],
}

CHECKS: dict[str, list[Workload]] = {
    "attention": [
        *(_attention_odd(256, 256, dim, causal) for dim in (64, 128, 256) for causal in (False, True)),
        *(_attention_odd(1, 1, dim, False) for dim in (64, 128, 256)),
        *(_attention_odd(77, 333, dim, causal) for dim in (64, 128, 256) for causal in (False, True)),
        _attention_odd(333, 77, 128, True),
        _attention_odd(333, 77, 64, False),
        *(_attention_odd(1000, 1000, dim, True, heads=8, kv=2, batch=3) for dim in (64, 128, 256)),
        *(attention(2, 640, 4, 128, causal, dtype="f16") for causal in (False, True)),
        *(attention(1, 4096, 16, dim, causal) for dim in (64, 128, 256) for causal in (False, True)),
    ],
    "decode": [
        *(decode(batch, length) for batch, length in ((1, 1), (1, 17), (3, 1000), (2, 4096), (64, 129), (1, 32768))),
        decode(2, 777, 8, 8),
        decode(2, 777, 16, 1),
        decode(2, 500, 32, 8, 64),
    ],
    "gemm": [
        *(gemm(128, 128, 64), gemm(1, 8, 8), gemm(129, 264, 72), gemm(1000, 1000, 1000), gemm(2048, 512, 4096)),
        gemm(300, 520, 200, bias=True, activation="silu"),
        gemm(300, 520, 200, bias=True, activation="relu"),
        gemm(300, 520, 200, bias=True, activation="gelu", scale=0.5),
        gemm(777, 336, 640, "f16"),
        gemm(256, 256, 128, "e4m3"),
        gemm(300, 520, 208, "e4m3", scale=0.125),
        gemm(4096, 4096, 4096),
    ],
    "small": [
        gemm(m, n, k) for m in (1, 3, 8, 16, 33, 64, 128) for n, k in ((264, 512), (4096, 4096), (1000, 1032), (8, 8))
    ],
    "rows": [
        rows(name, count, columns)
        for name in ("rmsnorm", "softmax", "swiglu")
        for count, columns in ((1, 8), (3, 1000), (257, 4096), (64, 8192))
    ],
}
