"""Kernels and executor on a real GPU; skipped, with the reason, where there is none."""

import numpy as np
import pytest

from zoi.device.cuda import CudaError, OutOfDeviceMemory, unavailable
from zoi.kernels.registry import parameter
from zoi.lab import suites
from zoi.lab.solutions import solutions

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=f"no GPU: {unavailable()}")

CASES = [
    (s, w) for s in solutions() for family in suites.CHECKS.values() for w in family if w.definition == s.definition
]


@pytest.fixture(scope="module")
def gpu():
    from zoi.lab.machine import Gpu

    return Gpu()


@pytest.mark.parametrize(("solution", "workload"), CASES, ids=lambda v: v.name)
def test_solutions_agree_with_float64(gpu, solution, workload):
    from zoi.lab.check import check

    if solution.exact_arch and gpu.machine.capability != solution.arch:
        pytest.skip(f"{solution.name} runs on sm_{solution.arch} alone")
    configs = solution.configs(workload, gpu.machine)
    if not configs:
        pytest.skip(f"{solution.name} does not take it")
    verdict = check(gpu, solution, workload, configs[0])
    assert verdict.passed, verdict


@pytest.mark.parametrize("change", ["large", "tiny", "equal", "outlier"])
@pytest.mark.parametrize("name", ["attention", "gemm"])
def test_extreme_values(gpu, name, change):
    from zoi.lab.check import check
    from zoi.lab.solutions import solution

    w = suites.attention(1, 333, 2, 128, True) if name == "attention" else suites.gemm(200, 264, 512)
    s = solution("attention_forward_sm90" if name == "attention" else "gemm_sm90")
    if gpu.machine.capability != s.arch:
        pytest.skip(f"{s.name} runs on sm_{s.arch} alone")
    verdict = check(gpu, s, w, change=change)
    assert verdict.passed, verdict


def test_a_graph_replays_what_was_captured(gpu):
    source = 'extern "C" __global__ void add(int* x, int by) { x[threadIdx.x] += by; }'
    function, _ = gpu.function(source, gpu.machine.arch, {}, "add", 0)
    buffer = gpu.cuda.Buffer(gpu.device, 128)
    gpu.device.fill(buffer.pointer, 0, 128)
    gpu.device.synchronize()
    launch = gpu.cuda.Launch(function, (1, 1, 1), 32, [parameter("Q", buffer.pointer), parameter("i", 3)])
    stream = gpu.cuda.Stream(gpu.device)
    gpu.cuda.Graph.begin(gpu.device, stream.handle)
    launch.run(stream.handle)
    launch.run(stream.handle)
    graph = gpu.cuda.Graph(gpu.device, stream.handle)
    for _ in range(5):
        graph.run(stream.handle)
    stream.synchronize()
    launch.patch(1, parameter("i", 100))
    launch.run()
    found = np.empty(32, np.int32)
    gpu.device.copy_out(found, buffer.pointer)
    assert np.all(found == 130)


def test_arrays_cross_by_dlpack_without_copies(gpu):
    torch = pytest.importorskip("torch")
    from zoi.device.cuda.arrays import from_dlpack

    buffer = gpu.cuda.Buffer(gpu.device, 64)
    tensor = torch.from_dlpack(buffer.array((4, 8), "bf16"))
    assert tensor.data_ptr() == buffer.pointer and tensor.dtype == torch.bfloat16
    back = from_dlpack(tensor.T)
    assert (back.pointer, back.shape, back.strides, back.dtype) == (buffer.pointer, (8, 4), (1, 8), "bf16")


def test_launching_costs_the_host_little(gpu):
    from zoi.lab.timing import host_us

    function, _ = gpu.function('extern "C" __global__ void nothing(int* x) {}', gpu.machine.arch, {}, "nothing", 0)
    launch = gpu.cuda.Launch(function, (1, 1, 1), 32, [parameter("Q", 0)])
    assert host_us(launch.run, gpu) < 10.0


def test_failures_have_their_own_classes(gpu):
    with pytest.raises(OutOfDeviceMemory, match="bytes"):
        gpu.cuda.Buffer(gpu.device, 1 << 50)
    with pytest.raises(CudaError):
        gpu.cuda.Module(gpu.device, b"not a cubin")
    with pytest.raises(CudaError, match="cuda:99"):
        gpu.cuda.device(99)
