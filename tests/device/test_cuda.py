"""The CUDA executor without a GPU: kernels compile for every architecture they name, and what is missing is said."""

from pathlib import Path

import pytest

import zoi.kernels
from zoi.device.cuda import CompileError, CudaError, DriverMissing, compile_cuda, unavailable
from zoi.device.cuda.compiler import available_compilers
from zoi.kernels.attention.cuda import attention_decode_sm80, attention_forward_sm90
from zoi.kernels.gemm.cuda import gemm_few_sm80, gemm_sm90
from zoi.kernels.registry import Machine
from zoi.lab import suites

ROOMS = Path(zoi.kernels.__file__).parent
compiler = pytest.mark.skipif(not available_compilers(), reason="neither NVRTC nor nvcc is installed")

CASES = [
    (attention_forward_sm90, suites.attention(1, 512, 2, 128, True), 90),
    (attention_forward_sm90, suites.attention(1, 512, 2, 64, False, dtype="f16"), 90),
    (attention_decode_sm80, suites.decode(1, 512), 80),
    (attention_decode_sm80, suites.decode(1, 512), 100),
    (gemm_sm90, suites.gemm(512, 512, 512, bias=True, activation="gelu"), 90),
    (gemm_sm90, suites.gemm(512, 512, 512, "e4m3"), 90),
    (gemm_few_sm80, suites.gemm(8, 512, 512), 80),
    (gemm_few_sm80, suites.gemm(8, 512, 512), 90),
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@compiler
@pytest.mark.parametrize(("solution", "workload", "capability"), CASES, ids=lambda v: getattr(v, "name", str(v)))
def test_kernels_compile_for_their_architectures(solution, workload, capability):
    machine = Machine(capability)
    build = solution.build(workload, solution.configs(workload, machine)[0], machine)
    cubin = compile_cuda(solution.source, machine.arch, build.defines)
    assert cubin.image[:4] == b"\x7fELF"
    assert build.entry.encode() in cubin.image


@compiler
def test_a_cubin_is_compiled_once_and_again_when_the_source_changes(cache):
    text = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] = VALUE; }'
    first = compile_cuda(text, "sm_90", {"VALUE": 1})
    assert compile_cuda(text, "sm_90", {"VALUE": 1}) == first
    assert len(list(cache.rglob("*"))) == 3  # two folders and one file
    assert compile_cuda(text, "sm_90", {"VALUE": 2}).source_hash != first.source_hash
    assert compile_cuda(text + "\n", "sm_90", {"VALUE": 1}).source_hash != first.source_hash
    assert sum(path.is_file() for path in cache.rglob("*")) == 3


@compiler
def test_a_change_of_an_included_header_counts(tmp_path):
    header, source = tmp_path / "h.cuh", tmp_path / "k.cuh"
    source.write_text('#include "h.cuh"\nextern "C" __global__ void f(int* x) { *x = N; }')
    header.write_text("#define N 1")
    first = compile_cuda(source, "sm_80")
    header.write_text("#define N 2")
    assert compile_cuda(source, "sm_80").source_hash != first.source_hash


@compiler
def test_what_the_compiler_says_is_in_the_error():
    with pytest.raises(CompileError, match="nonsense"):
        compile_cuda('extern "C" __global__ void f() { nonsense; }', "sm_90")


def test_an_unknown_compiler_is_an_error():
    with pytest.raises(CompileError, match="nvidia-cuda-nvrtc"):
        compile_cuda("", "sm_90", compiler="none")


def test_kernel_sources_include_nothing_but_their_own():
    for path in ROOMS.rglob("*.cuh"):
        assert "#include <" not in path.read_text(), path


@pytest.mark.skipif(unavailable() is None, reason="there is a GPU")
def test_without_a_gpu_the_executor_says_what_is_missing():
    cuda = pytest.importorskip("zoi._cuda")
    with pytest.raises(DriverMissing, match=r"driver|GPU"):
        cuda.device(0)
    assert issubclass(DriverMissing, CudaError)
    assert "driver" in unavailable() or "GPU" in unavailable()
