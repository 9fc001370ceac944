"""Triton kernels without a GPU: compiled ahead for three architectures, and run by Triton's interpreter."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zoi.kernels.registry import Machine
from zoi.lab import suites
from zoi.lab.definition import DEFINITIONS

pytest.importorskip("triton")

WORKLOADS = {
    "attention_forward_triton": suites.attention(1, 70, 2, 64, True),
    "gemm_triton": suites.gemm(70, 72, 80),
    "rmsnorm_triton": suites.rows("rmsnorm", 5, 100),
    "softmax_triton": suites.rows("softmax", 5, 100),
    "swiglu_triton": suites.rows("swiglu", 5, 100),
}


@pytest.mark.parametrize("capability", [80, 90, 100])
@pytest.mark.parametrize("name", WORKLOADS)
def test_kernels_compile_ahead(name, capability, tmp_path, monkeypatch):
    from zoi.device.cuda.arrays import dense
    from zoi.lab.ahead import compile_triton
    from zoi.lab.solutions import solution

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    s, w = solution(name), WORKLOADS[name]
    arrays = {t.name: dense(0, t.shape, t.dtype) for t in DEFINITIONS[w.definition].tensors(w)}
    cubin, facts = compile_triton(s, w, s.configs(w, Machine(capability))[-1], arrays, capability)
    assert cubin.image[:4] == b"\x7fELF" and facts["threads"] >= 32
    assert compile_triton(s, w, s.configs(w, Machine(capability))[-1], arrays, capability)[0] == cubin


# The interpreter cuts float32 to bf16 instead of rounding it, and its loops fail with NumPy 2.4; so it is given other
# types, and skipped there.
INTERPRETED = {
    "attention_forward_triton": suites.attention(1, 70, 2, 64, True, dtype="f16"),
    "gemm_triton": suites.gemm(70, 72, 80, "f16"),
    **{f"{name}_triton": replace(suites.rows(name, 5, 100), dtype="f32") for name in ("rmsnorm", "softmax", "swiglu")},
}
LOOPS = ("attention_forward_triton", "gemm_triton")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="Triton's interpreter needs torch")
@pytest.mark.parametrize("name", INTERPRETED)
def test_kernels_are_right_under_the_interpreter(name):
    if name in LOOPS and tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4):
        pytest.skip("loops of Triton's interpreter fail with NumPy 2.4")
    script = Path(__file__).with_name("interpret.py")
    done = subprocess.run([sys.executable, str(script), name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
