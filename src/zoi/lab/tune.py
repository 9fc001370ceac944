"""Tuning: every configuration of a solution's space timed within a budget, the winner kept on disk.

The key holds the GPU, the driver, the compiler and the source, so a kept choice is never used for anything else;
nothing is tuned unless asked to.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from zoi.device.cuda import disk_cache
from zoi.kernels.registry import Config, Solution, Workload
from zoi.lab import timing
from zoi.lab.check import check
from zoi.lab.definition import DEFINITIONS
from zoi.lab.machine import Gpu
from zoi.lab.timing import Contender
from zoi.lab.trace import workload_json


def key(gpu: Gpu, solution: Solution, w: Workload, source: str, compiler: str) -> str:
    """Under which a choice is kept."""
    facts = gpu.facts()
    parts = [facts["gpu"], facts["driver"], facts["multiprocessors"], compiler, source, solution.name, workload_json(w)]
    return "tune-" + hashlib.sha256(json.dumps([w.definition, *parts], sort_keys=True).encode()).hexdigest()


def tune(gpu: Gpu, solution: Solution, w: Workload, seconds: float = 20.0) -> tuple[Config, dict[str, float]]:
    """The fastest configuration that is right, and the time of each that was tried, in microseconds.

    Configurations come in the order of the record's cost model; those that the budget does not reach are left out.
    """
    configs = list(solution.configs(w, gpu.machine))
    if not configs:
        raise ValueError(f"{solution.name} does not take {w.name}.")
    tensors = DEFINITIONS[w.definition].tensors(w)
    rounds = timing.rotation(sum(t.bytes for t in tensors), gpu.device.l2_bytes)
    sets = [gpu.operands(tensors) for _ in range(rounds)]
    first = gpu.bind(solution, w, configs[0], sets[0]).info

    def search() -> bytes:
        times: dict[str, float] = {}
        begin = time.monotonic()
        for config in configs:
            if times and time.monotonic() - begin > seconds:
                break
            bounds = [gpu.bind(solution, w, config, arrays) for arrays in sets]
            us = timing.measure(gpu, [Contender("it", [b.run for b in bounds])], 8.0, 5).us["it"]
            if check(gpu, solution, w, config).passed:
                times[json.dumps(dict(config))] = round(us, 3)
        if not times:
            raise RuntimeError(f"{solution.name}: no configuration computes {w.name} rightly.")
        return json.dumps(times).encode()

    kept: dict[str, Any] = json.loads(disk_cache(key(gpu, solution, w, first["source"], first["compiler"]), search))
    return json.loads(min(kept, key=lambda name: kept[name])), kept
