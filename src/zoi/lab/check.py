"""Checks that a solution cannot pass by luck: fresh inputs, poisoned outputs, inputs unchanged, equal bits thrice.

Values are compared with a float64 reference at every point of small workloads and at drawn points of large ones; NaN
that the reference does not have never passes; every element must have been written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zoi.kernels.registry import Config, Solution, Workload
from zoi.lab.definition import DEFINITIONS, Expected, limit
from zoi.lab.dtypes import decode, encode
from zoi.lab.machine import Gpu

ALL_POINTS = 4096
"""Workloads with at most so many points are compared whole."""


@dataclass
class Verdict:
    """What a check found: the worst error as a share of the limit, the error over all, and what failed."""

    workload: str
    passed: bool
    worst: float
    relative: float
    points: int
    failures: list[str]

    def json(self) -> dict[str, Any]:
        """For a trace."""
        return asdict(self)


def check(
    gpu: Gpu, solution: Solution, w: Workload, config: Config | None = None, points: int = 96, change: str | None = None
) -> Verdict:
    """Runs a solution on fresh inputs and judges it.

    Args:
        gpu: Where to run.
        solution: What to run.
        w: The workload.
        config: The configuration; by default the solution's first guess.
        points: How many points of a large workload to compare.
        change: An extreme to set in the inputs: `large`, `tiny`, `equal`, `outlier`.
    """
    definition = DEFINITIONS[w.definition]
    tensors = definition.tensors(w)
    config = config if config is not None else solution.configs(w, gpu.machine)[0]
    arrays = gpu.operands(tensors)
    if change:
        for tensor in tensors:
            if not tensor.output:
                gpu.write(arrays[tensor.name], extreme(change, tensor.shape, tensor.dtype, tensor.spread))
    bound = gpu.bind(solution, w, config, arrays)

    def run() -> dict[str, npt.NDArray[Any]]:
        gpu.poison(arrays, tensors)
        bound.run()
        gpu.device.synchronize()
        return {tensor.name: gpu.read(arrays[tensor.name]) for tensor in tensors if tensor.output}

    return judge(w, lambda: {t.name: gpu.read(arrays[t.name]) for t in tensors if not t.output}, run, points)


def judge(
    w: Workload,
    inputs: Callable[[], Mapping[str, npt.NDArray[Any]]],
    run: Callable[[], Mapping[str, npt.NDArray[Any]]],
    points: int = 96,
) -> Verdict:
    """Judges any way of computing a workload: `inputs` reads the operands' bits, `run` poisons, runs and reads."""
    definition = DEFINITIONS[w.definition]
    before = inputs()
    sums = {name: zlib.crc32(bits.tobytes()) for name, bits in before.items()}
    results = [run() for _ in range(3)]
    failures = []
    for name, bits in inputs().items():
        if zlib.crc32(bits.tobytes()) != sums[name]:
            failures.append(f"{name}: an input was written to")
    for name in results[0]:
        if any(not np.array_equal(bytes_of(results[0][name]), bytes_of(other[name])) for other in results[1:]):
            failures.append(f"{name}: the bits differ from run to run")
    total = definition.points(w)
    rng = np.random.default_rng()
    chosen = np.arange(total) if total <= ALL_POINTS else np.unique(rng.integers(0, total, points))
    expected = definition.reference(w, before, chosen)
    found = definition.select(w, results[0], chosen)
    dtypes = {tensor.name: tensor.dtype for tensor in definition.tensors(w)}
    worst, relative = 0.0, 0.0
    for name, want in expected.items():
        share, error, message = compare(want, found[name], dtypes[name])
        worst, relative = max(worst, share), max(relative, error)
        failures += [f"{name}: {message}"] if message else []
        if dtypes[name] in ("bf16", "f16") and not np.isnan(want.values).any():
            unwritten = int((results[0][name].view(np.uint16) == 0xFFFF).sum())
            if unwritten:
                failures.append(f"{name}: {unwritten} elements were not written")
    return Verdict(w.name, not failures, worst, relative, len(chosen), failures)


def compare(want: Expected, bits: npt.NDArray[Any], dtype: str) -> tuple[float, float, str]:
    """The worst error as a share of its limit, the error over all, and a message where it is too large."""
    found = decode(bits, dtype)
    exact = want.values.reshape(found.shape)
    allowed = limit(want, dtype).reshape(found.shape)
    special = ~np.isfinite(exact)
    same = np.array_equal(np.isnan(found[special]), np.isnan(exact[special])) and np.array_equal(
        np.nan_to_num(found[special]), np.nan_to_num(exact[special])
    )
    with np.errstate(invalid="ignore"):
        error = np.where(special, 0.0, np.abs(found - exact))
        share = np.where(special, 0.0, error / allowed)
    share = np.where(np.isnan(share), np.inf, share)
    norm = np.linalg.norm(exact[~special])
    overall = float(np.linalg.norm(error) / norm) if norm > 0 else 0.0
    worst = float(share.max(initial=0.0))
    if not same:
        return np.inf, overall, "infinities or NaN are not those of the reference"
    if not worst <= 1.0:
        at = np.unravel_index(int(np.argmax(share)), share.shape)
        place = tuple(int(i) for i in at)
        return (
            worst,
            overall,
            f"at {place} is {found[at]:.6g}, expected {exact[at]:.6g}, allowed error {allowed[at]:.3g}",
        )
    return worst, overall, ""


def extreme(kind: str, shape: tuple[int, ...], dtype: str, spread: float) -> npt.NDArray[Any]:
    """Inputs that go wrong in careless kernels."""
    values = np.random.default_rng().standard_normal(shape) * spread
    if kind == "large":
        values *= 8.0
    elif kind == "tiny":
        values *= 2.0**-12
    elif kind == "equal":
        values = np.full(shape, 0.75)
    elif kind == "outlier":
        values.reshape(-1)[:: max(1, values.size // 17)] *= 40.0
    return encode(values, dtype)


def bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """An array's bytes, so that NaN equals itself."""
    return np.ascontiguousarray(array).view(np.uint8)
