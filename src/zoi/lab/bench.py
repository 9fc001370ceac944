"""Checks and times solutions and their peers on a list of workloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zoi.kernels.registry import Config, Solution, Workload
from zoi.lab import timing
from zoi.lab.check import check
from zoi.lab.definition import DEFINITIONS
from zoi.lab.machine import Gpu
from zoi.lab.peers import peers
from zoi.lab.timing import Contender
from zoi.lab.trace import Trace, workload_json


def bench(
    gpu: Gpu,
    solution: Solution,
    w: Workload,
    configs: Sequence[Config] | None = None,
    rivals: bool = True,
    ms: float = 12.0,
) -> Trace | None:
    """Times the configurations given (by default the first guess), checks the fastest, times it beside its peers.

    Returns nothing where the solution does not take the workload.
    """
    definition = DEFINITIONS[w.definition]
    possible = solution.configs(w, gpu.machine) if solution.arch <= gpu.machine.capability else ()
    chosen = list(configs if configs is not None else possible[:1])
    if not chosen:
        return None
    tensors = definition.tensors(w)
    l2 = gpu.device.l2_bytes
    sets = [gpu.operands(tensors) for _ in range(timing.rotation(sum(t.bytes for t in tensors), l2))]
    timed: list[dict[str, Any]] = []
    bounds: dict[int, list[Any]] = {}
    failures: dict[str, str] = {}
    for at, config in enumerate(chosen):
        try:
            bounds[at] = [gpu.bind(solution, w, config, arrays) for arrays in sets]
        except Exception as error:
            failures[str(dict(config))] = str(error)[:300]
    if not bounds:
        raise RuntimeError(f"{solution.name}: no configuration of {w.name} could be made ready: {failures}")
    best = next(iter(bounds))
    if len(bounds) > 1:
        trial = [Contender(str(at), [b.run for b in made]) for at, made in bounds.items()]
        times = timing.measure(gpu, trial, ms / 2, 5)
        best = int(min(times.us, key=lambda name: times.us[name]))
        timed = [{**chosen[int(name)], "us": round(us, 3)} for name, us in times.us.items()]
    info = bounds[best][0].info
    verdict = check(gpu, solution, w, chosen[best])
    contenders = [Contender("zoi", [b.run for b in bounds[best]])]
    if rivals:
        made = [peers(w, arrays) for arrays in sets]
        for name in made[0]:
            contenders.append(Contender(name, [timing.ignore_stream(calls[name]) for calls in made], torch=True))
    cold = timing.measure(gpu, contenders, ms)
    failures |= cold.failures
    for contender in contenders:
        contender.calls = contender.calls[:1]
    warm = timing.measure(gpu, contenders, ms / 2, 4) if len(sets) > 1 else cold
    after = check(gpu, solution, w, chosen[best])
    if not after.passed:
        verdict = after
    return Trace(
        definition=w.definition,
        workload=workload_json(w),
        solution=solution.name,
        config=dict(chosen[best]),
        compiler=info["compiler"],
        source=info["source"],
        registers=info["registers"],
        local_bytes=info["local_bytes"],
        flops=definition.flops(w),
        bytes=definition.bytes(w),
        us={"cold": round(cold.us["zoi"], 3), "warm": round(warm.us["zoi"], 3)},
        peers={
            name: {"cold": round(us, 3), "warm": round(warm.us.get(name, us), 3)}
            for name, us in cold.us.items()
            if name != "zoi"
        },
        check=verdict.json(),
        configs=timed,
        failures=failures,
    )


def line(trace: Trace) -> str:
    """A trace in one line."""
    ratio = trace.ratio()
    others = " ".join(f"{name} {times['cold']:.1f}" for name, times in trace.peers.items())
    return (
        f"{trace.solution:26s} {trace.name:66s} {trace.us['cold']:9.1f} us (warm {trace.us['warm']:.1f}) "
        f"{trace.tflops:7.1f} TFLOP/s {trace.gbs:6.0f} GB/s | {others} | {f'{ratio:.2f}x' if ratio else '-'} "
        f"{'ok' if trace.check['passed'] else 'WRONG ' + '; '.join(trace.check['failures'])} {trace.config}"
        f"{' ' + str(trace.failures) if trace.failures else ''}"
    )
