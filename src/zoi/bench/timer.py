"""The one timer: contenders take turns in one process, warmed, and every single run is kept.

Blocks of runs alternate A B, B A, A B ... so that drift of the clock frequency or of the neighbours' load falls on
all of them alike. The first calls of a block are not counted: they run on caches that the other contender filled.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

Call = Callable[[], object]
Nanoseconds = npt.NDArray[np.int64]

ROUNDS = 10
SETTLE = 3
WARM_SECONDS = 0.2
MIN_RUNS = 1000
"""At least this many runs of what lasts less than a millisecond."""


@dataclass(frozen=True)
class Stats:
    """Percentiles of single runs, in microseconds."""

    runs: int
    min: float
    p50: float
    p99: float
    p999: float
    max: float

    @staticmethod
    def of(samples: Nanoseconds) -> Stats:
        """The percentiles of a series; each is a run that took place, not a value between two."""
        if samples.size == 0:
            raise ValueError("no runs to take percentiles of")
        points = np.percentile(samples, [0, 50, 99, 99.9, 100], method="higher") / 1e3
        return Stats(int(samples.size), *(round(float(p), 3) for p in points))

    def json(self) -> dict[str, float]:
        """As a JSON object, times in microseconds."""
        return asdict(self)


def measure(
    contenders: Mapping[str, Sequence[Call]],
    runs: int | None = None,
    seconds: float = 3.0,
    idle_gap_ms: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Nanoseconds]:
    """Times every contender's calls in turn.

    Args:
        contenders: Name -> the same work on different inputs, taken in rotation.
        runs: Runs of each contender; by default what fits in `seconds`, and never under `MIN_RUNS` where a run
            lasts less than a millisecond, nor under 30.
        seconds: Time to spend on each contender where `runs` is not given.
        idle_gap_ms: Sleep this long before every run.
        progress: Told the share that is done.

    Returns:
        Name -> nanoseconds of every run, in order.
    """
    cycles = {name: _cycle(calls) for name, calls in contenders.items()}
    typical = {name: _warm(calls) for name, calls in cycles.items()}
    slowest = max(typical.values()) + idle_gap_ms / 1e3
    count = runs or choose_runs(slowest, seconds)
    rounds = min(ROUNDS, count)
    samples: dict[str, list[int]] = {name: [] for name in contenders}
    order = list(contenders)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            block = count * (turn + 1) // rounds - count * turn // rounds
            for place, name in enumerate(order if turn % 2 == 0 else reversed(order)):
                _block(cycles[name], block, idle_gap_ms / 1e3, samples[name])
                if progress:
                    progress((turn + (place + 1) / len(order)) / rounds)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return {name: np.array(series, np.int64) for name, series in samples.items()}


def choose_runs(typical_seconds: float, seconds: float) -> int:
    """How many runs of this length to make in about so many seconds."""
    least = MIN_RUNS if typical_seconds < 1e-3 else 30
    return int(min(max(least, seconds / typical_seconds), 100_000))


def _block(calls: Iterator[Call], count: int, gap: float, out: list[int]) -> None:
    clock, sleep = time.perf_counter_ns, time.sleep
    for _ in range(SETTLE):
        next(calls)()
    for _ in range(count):
        call = next(calls)
        if gap:
            sleep(gap)
        start = clock()
        call()
        out.append(clock() - start)


def _cycle(calls: Sequence[Call]) -> Iterator[Call]:
    while True:
        yield from calls


def _warm(calls: Iterator[Call]) -> float:
    """Calls for a while; returns the median length in seconds."""
    lengths: list[float] = []
    begin = time.perf_counter()
    while len(lengths) < 5 or time.perf_counter() - begin < WARM_SECONDS:
        start = time.perf_counter()
        next(calls)()
        lengths.append(time.perf_counter() - start)
    return float(np.median(lengths))
