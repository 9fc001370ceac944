"""Traces: what was run, on what, how it was checked, and how long it took. A file holds one run of the lab."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zoi.kernels.registry import Workload


@dataclass
class Trace:
    """One solution on one workload."""

    definition: str
    workload: dict[str, Any]
    solution: str
    config: dict[str, Any]
    compiler: str
    source: str
    registers: int
    local_bytes: int
    flops: float
    bytes: int
    us: dict[str, float]  # cold, warm
    peers: dict[str, dict[str, float]]  # name -> cold, warm
    check: dict[str, Any]
    configs: list[dict[str, Any]] = field(default_factory=list)  # each that was timed, with its time
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The workload in one line."""
        return workload_of(self.workload, self.definition).name

    @property
    def tflops(self) -> float:
        """Useful work done a second, data out of the L2."""
        return self.flops / self.us["cold"] / 1e6

    @property
    def gbs(self) -> float:
        """The fewest bytes over the time, in GB/s."""
        return self.bytes / self.us["cold"] / 1e3

    def ratio(self) -> float | None:
        """How much faster than the fastest peer, data out of the L2."""
        times = [peer["cold"] for peer in self.peers.values() if "cold" in peer]
        return min(times) / self.us["cold"] if times else None


@dataclass
class Run:
    """Traces of one run, and the machine."""

    machine: dict[str, Any]
    traces: list[Trace]

    def save(self, path: Path) -> None:
        """Writes JSON."""
        path.write_text(
            json.dumps({"machine": self.machine, "traces": [asdict(t) for t in self.traces]}, indent=1) + "\n"
        )

    @staticmethod
    def load(path: Path) -> Run:
        """Reads what save wrote."""
        data = json.loads(path.read_text())
        return Run(data["machine"], [Trace(**item) for item in data["traces"]])


def workload_json(w: Workload) -> dict[str, Any]:
    """A workload as JSON."""
    return {"axes": dict(w.axes), "dtype": w.dtype, "options": dict(w.options)}


def workload_of(data: Mapping[str, Any], definition: str) -> Workload:
    """And back."""
    return Workload(definition, data["axes"], data["dtype"], data["options"])


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive numbers; NaN of none."""
    from math import exp, log

    logs = [log(v) for v in values]
    return exp(sum(logs) / len(logs)) if logs else float("nan")
