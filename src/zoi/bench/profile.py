"""Where a plan's time goes: every step timed alone, in the order of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zoi.plan import Plan
from zoi.session import Session


@dataclass(frozen=True)
class StepTime:
    """One step's figures; times in microseconds, bytes of its distinct operands."""

    name: str
    family: str
    kernel: str
    p50: float
    p99: float
    share: float
    gflops: float
    bytes: int

    @property
    def gbytes(self) -> float:
        """Operand bytes per second, in GB/s."""
        return self.bytes / self.p50 / 1e3 if self.p50 else 0.0


def profile(plan: Plan, feeds: Mapping[str, npt.ArrayLike], cores: list[int], runs: int = 200) -> list[StepTime]:
    """Times the steps of a plan on one lane.

    Args:
        plan: The plan; its steps run one by one, with the caches that the step before left.
        feeds: Values of the inputs.
        cores: The core to pin to.
        runs: Passes over the plan; a tenth more come first to warm up.
    """
    session = Session(plan, cores=cores)
    session(dict(feeds))
    samples = np.array(session.profile(runs + runs // 10 + 1))[:, -runs:] / 1e3
    medians = np.median(samples, axis=1)
    total = float(medians.sum()) or 1.0
    return [
        StepTime(
            step["name"],
            step["family"],
            step["kernel"],
            float(p50),
            float(np.percentile(times, 99)),
            float(p50) / total,
            step["flops"] / float(p50) / 1e3 if p50 else 0.0,
            sum(operand["bytes"] for operand in step["operands"]),
        )
        for step, times, p50 in zip(plan.steps, samples, medians, strict=True)
    ]
