"""Time on the GPU: graphs of several launches, between events, contenders in turns.

A graph leaves no gaps for launching, so short kernels are timed as they would run in a plan. `cold` launches rotate
over operand sets that together exceed the L2 twice; `warm` launches use one set. Contenders alternate A B, B A, so that
clocks that fall under load fall on all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoi.lab.machine import Gpu

Launch = Callable[[int], object]


@dataclass
class Contender:
    """Something to time: `calls` do the same work on different operands, on the stream given."""

    name: str
    calls: Sequence[Launch]
    torch: bool = False


@dataclass(frozen=True)
class Times:
    """Microseconds a call by contender, and why the others have none."""

    us: dict[str, float]
    failures: dict[str, str]


def ignore_stream(call: Callable[[], object]) -> Launch:
    """A call that finds its stream itself, as torch's do."""
    return lambda _: call()


def rotation(bytes_each: int, l2_bytes: int, most: int = 24) -> int:
    """How many operand sets make every launch find its data outside the L2."""
    return max(1, min(most, -(-2 * l2_bytes // max(bytes_each, 1)) + 1)) if bytes_each < 2 * l2_bytes else 1


def measure(gpu: Gpu, contenders: Sequence[Contender], target_ms: float = 12.0, rounds: int = 8) -> Times:
    """The median time of each contender's call; contenders take turns."""
    ready = {}
    failed = {}
    stream = _stream(gpu)
    for contender in contenders:
        try:
            ready[contender.name] = _graph(gpu, contender, stream)
        except Exception as error:  # a peer may not take a workload; what it says is kept
            failed[contender.name] = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    samples: dict[str, list[float]] = {name: [] for name in ready}
    start, end = gpu.cuda.Event(gpu.device), gpu.cuda.Event(gpu.device)

    def once(name: str, repeats: int) -> float:
        replay, count = ready[name]
        start.record(stream.handle)
        for _ in range(repeats):
            replay()
        end.record(stream.handle)
        return float(end.since(start)) * 1e3 / (repeats * count)

    repeats = {}
    for name in ready:
        once(name, 1)
        each = once(name, 1) * ready[name][1]
        repeats[name] = max(1, min(200, round(target_ms * 1e3 / rounds / max(each, 1.0))))
    for turn in range(rounds):
        for name in list(ready) if turn % 2 == 0 else list(reversed(ready)):
            samples[name].append(once(name, repeats[name]))
    return Times({name: float(np.median(values)) for name, values in samples.items()}, failed)


class _TorchStream:
    def __init__(self) -> None:
        import torch

        self.stream = torch.cuda.Stream()
        self.handle = int(self.stream.cuda_stream)


def _stream(gpu: Gpu) -> Any:
    try:
        import torch

        if torch.cuda.is_available():
            return _TorchStream()
    except ImportError:
        pass
    return gpu.cuda.Stream(gpu.device)


def _graph(gpu: Gpu, contender: Contender, stream: Any) -> tuple[Callable[[], object], int]:
    calls = list(contender.calls)
    while len(calls) < 8:
        calls += list(contender.calls)
    if contender.torch:
        import torch

        with torch.cuda.stream(stream.stream):
            for call in contender.calls:
                call(0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream.stream):
            for call in calls:
                call(0)

        def replay() -> None:
            with torch.cuda.stream(stream.stream):
                graph.replay()

        return replay, len(calls)
    for call in contender.calls:
        call(stream.handle)
    gpu.device.synchronize()
    gpu.cuda.Graph.begin(gpu.device, stream.handle)
    for call in calls:
        call(stream.handle)
    own = gpu.cuda.Graph(gpu.device, stream.handle)
    return (lambda: own.run(stream.handle)), len(calls)


def host_us(call: Callable[[], object], gpu: Gpu, count: int = 2000) -> float:
    """What one call costs the host, in microseconds, while the GPU keeps up."""
    import time

    costs = []
    for _ in range(10):
        gpu.device.synchronize()
        start = time.perf_counter_ns()
        for _ in range(count // 10):
            call()
        costs.append((time.perf_counter_ns() - start) / (count // 10) / 1e3)
    gpu.device.synchronize()
    return float(np.median(costs))
