"""All solutions: those of the families' rooms, and those that were added from outside."""

from __future__ import annotations

import importlib
import importlib.util

from zoi.kernels.registry import Solution

_ROOMS = ("attention", "gemm", "norm", "softmax", "pointwise")
_added: list[Solution] = []


def add(solution: Solution) -> Solution:
    """Makes a solution from outside the tree known to the lab."""
    _added.append(solution)
    return solution


def solutions() -> list[Solution]:
    """Every solution; Triton's only where Triton is installed."""
    found: list[Solution] = []
    for room in _ROOMS:
        for language in ("cuda", "triton"):
            name = f"zoi.kernels.{room}.{language}"
            if importlib.util.find_spec(name) is None:
                continue
            if language == "triton" and importlib.util.find_spec("triton") is None:
                continue
            found += importlib.import_module(name).SOLUTIONS
    return [*found, *_added]


def solution(name: str) -> Solution:
    """One, by name."""
    for candidate in solutions():
        if candidate.name == name:
            return candidate
    raise KeyError(f"no solution '{name}'; there are {', '.join(s.name for s in solutions())}")
