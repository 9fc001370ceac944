"""What others offer for the same definition, through torch: cuBLAS, cuDNN, FlashAttention-2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zoi.device.cuda.arrays import Array
from zoi.kernels.registry import Workload

Call = Callable[[], object]


def peers(w: Workload, arrays: Mapping[str, Array]) -> dict[str, Call]:
    """Name -> a call that computes the workload on these operands; none where torch is not installed."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    tensors = {name: _tensor(array) for name, array in arrays.items()}
    made = {
        "attention.forward": _attention,
        "attention.decode": _attention,
        "gemm": _gemm,
        "softmax": _softmax,
        "rmsnorm": _rmsnorm,
        "swiglu": _swiglu,
    }
    return made[w.definition](w, tensors)


def _tensor(array: Array) -> Any:
    import torch

    tensor = torch.from_dlpack(array.owner.array(array.shape, array.dtype))  # type: ignore[attr-defined]
    return tensor.view(torch.float8_e4m3fn) if array.dtype == "e4m3" else tensor


def _attention(w: Workload, t: dict[str, Any]) -> dict[str, Call]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (t[name].transpose(1, 2) for name in "qkv")
    causal = bool(w.option("causal"))
    if causal and w["seq_q"] != w["seq_k"]:
        return {}

    def through(backend: Any) -> Call:
        def call() -> object:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=w["heads"] != w["kv_heads"]
                )

        return call

    found = {"cudnn": through(SDPBackend.CUDNN_ATTENTION)}
    if w["heads"] == w["kv_heads"]:
        found["flash2"] = through(SDPBackend.FLASH_ATTENTION)
    return found


def _gemm(w: Workload, t: dict[str, Any]) -> dict[str, Call]:
    import torch

    a, b, c = t["a"], t["b"], t["c"]
    out = torch.empty_like(c)
    if w.dtype == "e4m3":
        one = torch.ones((), device=a.device, dtype=torch.float32)
        return {
            "cublas": lambda: torch._scaled_mm(
                a, b.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        }
    if w.dtype == "i8":
        return {"cublas": lambda: torch._int_mm(a, b.T)}
    if w.option("bias"):
        return {"cublas": lambda: torch.addmm(t["bias"], a, b.T, out=out)}
    return {"cublas": lambda: torch.mm(a, b.T, out=out)}


def _softmax(w: Workload, t: dict[str, Any]) -> dict[str, Call]:
    import torch

    return {"torch": lambda: torch.softmax(t["x"], -1)}


def _rmsnorm(w: Workload, t: dict[str, Any]) -> dict[str, Call]:
    import torch

    return {"torch": lambda: torch.nn.functional.rms_norm(t["x"], (w["columns"],), t["weight"], 1e-6)}


def _swiglu(w: Workload, t: dict[str, Any]) -> dict[str, Call]:
    import torch

    def call() -> object:
        gate, up = t["x"].chunk(2, -1)
        return torch.nn.functional.silu(gate) * up

    return {"torch": call}
