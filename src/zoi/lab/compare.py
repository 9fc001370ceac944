"""The regression gate: two runs of the lab, workload by workload."""

from __future__ import annotations

from dataclasses import dataclass

from zoi.lab.trace import Run, geometric_mean


@dataclass(frozen=True)
class Change:
    """One workload in both runs; above 1 the new one is faster."""

    solution: str
    workload: str
    old_us: float
    new_us: float
    wrong: bool

    @property
    def speedup(self) -> float:
        """Old time over new time."""
        return self.old_us / self.new_us


@dataclass(frozen=True)
class Comparison:
    """All that two runs share, and what only the old one has."""

    changes: list[Change]
    missing: list[str]
    same_gpu: bool

    def regressions(self, tolerance: float = 0.05) -> list[Change]:
        """What became slower by more than the tolerance, or wrong."""
        return [c for c in self.changes if c.wrong or c.speedup < 1.0 - tolerance]

    @property
    def mean(self) -> float:
        """Geometric mean of the speed-ups."""
        return geometric_mean(c.speedup for c in self.changes)


def compare(old: Run, new: Run) -> Comparison:
    """Pairs the traces of two runs by solution and workload."""
    fresh = {(t.solution, t.definition, t.name): t for t in new.traces}
    changes, missing = [], []
    for trace in old.traces:
        now = fresh.get((trace.solution, trace.definition, trace.name))
        if now is None:
            missing.append(f"{trace.solution}: {trace.name}")
            continue
        wrong = not now.check["passed"]
        changes.append(Change(trace.solution, trace.name, trace.us["cold"], now.us["cold"], wrong))
    return Comparison(changes, missing, old.machine.get("gpu") == new.machine.get("gpu"))
