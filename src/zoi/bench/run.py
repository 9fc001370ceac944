"""One comparison from start to end: load the contenders, check that they agree, time them in turn, check again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zoi
from zoi.bench import machine, memory, timer
from zoi.bench.agreement import Agreement, compare
from zoi.bench.inputs import Feeds, model_inputs, pool_size, random_feeds
from zoi.bench.peers import Peer, make
from zoi.plan import TensorSpec

Progress = Callable[[str, float], None]


@dataclass
class Result:
    """What was measured of one contender."""

    name: str
    version: str = ""
    stats: timer.Stats | None = None
    samples: timer.Nanoseconds | None = None
    agreement: Agreement | None = None
    memory_bytes: int | None = None
    failure: str = ""

    def json(self) -> dict[str, Any]:
        """As a JSON object; times in microseconds, memory in bytes."""
        if self.failure:
            return {"name": self.name, "failure": self.failure}
        return {
            "name": self.name,
            "version": self.version,
            "us": self.stats.json() if self.stats else None,
            "error": self.agreement.error if self.agreement else None,
            "argmax_equal": self.agreement.argmax_equal if self.agreement else None,
            "memory_bytes": self.memory_bytes,
        }


@dataclass
class Report:
    """A comparison on one model."""

    model: str
    inputs: list[str]
    cores: list[int]
    idle_gap_ms: float
    results: list[Result]
    machine: dict[str, Any] = field(default_factory=machine.describe)

    def ratios(self) -> dict[str, float]:
        """Peer -> how many times longer its median run is than zoi's."""
        by_name = {r.name: r.stats for r in self.results if r.stats}
        ours = by_name.pop("zoi", None)
        return {name: round(stats.p50 / ours.p50, 3) for name, stats in by_name.items()} if ours else {}

    @property
    def agrees(self) -> bool:
        """Whether every contender that ran agrees with the reference."""
        return all(r.agreement is None or r.agreement.ok for r in self.results)

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "model": self.model,
            "inputs": self.inputs,
            "cores": self.cores,
            "idle_gap_ms": self.idle_gap_ms,
            "results": [r.json() for r in self.results],
            "ratio_of_medians": self.ratios(),
            "machine": self.machine,
        }


def run(
    model: str | os.PathLike[str],
    peers: Sequence[str] = ("zoi", "ort"),
    shapes: Mapping[str, Sequence[int]] | None = None,
    fix: Mapping[str, Any] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    cores: Sequence[int] | None = None,
    runs: int | None = None,
    seconds: float = 3.0,
    idle_gap_ms: float = 0.0,
    with_memory: bool = True,
    progress: Progress | None = None,
    pool: Sequence[Feeds] | None = None,
    make_feeds: Callable[[Sequence[TensorSpec], np.random.Generator], Feeds] | None = None,
) -> Report:
    """Compares implementations on one ONNX model, one thread for each core.

    A peer that cannot load or run the model is reported with its message, and the others go on. The reference of
    agreement is ONNX Runtime where it takes part, else the first peer that runs.

    Args:
        model: The ONNX file.
        peers: Names of `zoi.bench.peers.PEERS`.
        shapes: Input name -> shape, where the model leaves one open.
        fix: Input name -> value that all contenders get in every run.
        ranges: Input name -> (lowest, highest) of its random values.
        cores: The cores to pin to; by default the last one allowed.
        runs: Runs of each contender; by default as `timer.measure` chooses.
        seconds: Time for each contender.
        idle_gap_ms: Sleep before every run.
        with_memory: Measure the growth of memory as well, in child processes.
        progress: Told what is being done, and the share of it that is done.
        pool: Inputs to run in rotation, rather than fresh ones.
        make_feeds: Makes one set of fresh inputs; random ones by default.
    """
    shapes, fix, tell = shapes or {}, fix or {}, progress or (lambda what, share: None)
    chosen = list(cores or default_cores())
    specs = zoi.load(model).inputs if os.fspath(model).endswith(".zoi") else model_inputs(model, shapes, fix)
    rng = np.random.default_rng()
    fresh = make_feeds or (lambda specs, rng: random_feeds(specs, rng, ranges))
    pool = pool or [fresh(specs, rng) for _ in range(pool_size(specs))]
    results = [Result(name) for name in peers]
    loaded: dict[str, Peer] = {}
    with pinned(chosen):
        for index, result in enumerate(results):
            tell(f"loading {result.name}", index / len(results))
            try:
                peer = make(result.name, model, shapes, fix, chosen)
                peer.outputs(pool[0])
                loaded[result.name], result.version = peer, peer.version
            except Exception as error:
                result.failure = f"{type(error).__name__}: {error}"
        running = [result for result in results if result.name in loaded]
        _check(running, loaded, pool[:2])
        calls = {name: [peer.bind(feeds) for feeds in pool] for name, peer in loaded.items()}
        series = timer.measure(calls, runs, seconds, idle_gap_ms, lambda share: tell("timing", share)) if calls else {}
        for result in running:
            result.samples = series[result.name]
            result.stats = timer.Stats.of(result.samples)
        _check(running, loaded, [fresh(specs, rng)])
    if with_memory:
        for index, result in enumerate(running):
            tell(f"memory of {result.name}", index / len(running))
            result.memory_bytes = _memory(result, model, shapes, fix, specs, chosen[0], ranges)
    return Report(Path(model).name, [str(s) for s in specs], chosen, idle_gap_ms, results)


def _check(running: Sequence[Result], loaded: Mapping[str, Peer], sets: Sequence[Feeds]) -> None:
    """Compares everyone with the reference on these inputs, and keeps the worst seen so far."""
    if not running:
        return
    reference = loaded.get("ort") or loaded[running[0].name]
    for feeds in sets:
        expected = reference.outputs(feeds)
        for result in running:
            if loaded[result.name] is not reference:
                now = compare(loaded[result.name].outputs(feeds), expected)
                result.agreement = result.agreement.merge(now) if result.agreement else now


def _memory(
    result: Result,
    model: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int]],
    fix: Mapping[str, Any],
    specs: Sequence[TensorSpec],
    core: int,
    ranges: Mapping[str, tuple[float, float]] | None,
) -> int | None:
    try:
        return memory.growth(result.name, model, shapes, fix, specs, core, ranges)
    except RuntimeError:
        return None


def default_cores() -> list[int]:
    """The last core that this process may use: the first ones serve most interrupts."""
    return [max(os.sched_getaffinity(0))]


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Confines this process to `cores`, threads made meanwhile included.

    Raises:
        zoi.InputError: A core does not exist or is not allowed.
    """
    before = os.sched_getaffinity(0)
    if not set(cores) <= before:
        raise zoi.InputError(f"cores {sorted(cores)}: this process may use {sorted(before)} only; see `zoi doctor`.")
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
