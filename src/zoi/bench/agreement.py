"""The one tolerance model: when do two implementations of a float model agree?

The error of an output is its largest absolute difference over its scale, the largest finite magnitude of the
reference. The winner along the last axis must be the same wherever the reference's winner leads by more than the
tolerance allows to vanish. Integer and boolean outputs must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Agreement:
    """How two sets of outputs compare: the worst error over the outputs, and whether all winners are the same."""

    error: float
    argmax_equal: bool
    worst: str
    """The output with the largest error."""

    @property
    def ok(self) -> bool:
        """Whether the two agree."""
        return self.error <= TOLERANCE and self.argmax_equal

    def merge(self, other: Agreement) -> Agreement:
        """The worse of two."""
        worse = self if self.error >= other.error else other
        return Agreement(worse.error, self.argmax_equal and other.argmax_equal, worse.worst)


def compare(found: Mapping[str, Array], reference: Mapping[str, Array]) -> Agreement:
    """Compares outputs by name; an output that is missing, or of another shape or type, is an infinite error."""
    result = Agreement(0.0, True, "")
    for name, expected in reference.items():
        got = found.get(name)
        if got is None or got.shape != expected.shape or got.dtype != expected.dtype:
            return Agreement(float("inf"), False, name)
        result = result.merge(Agreement(error_of(got, expected), argmax_equal(got, expected), name))
    return result


def error_of(found: Array, expected: Array) -> float:
    """Largest difference over the reference's scale; infinite where one is NaN or infinite and the other is not."""
    if expected.dtype.kind not in "fV":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    a, b = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf")
    difference = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0))
    scale = float(np.max(np.abs(b[finite]), initial=0.0))
    return difference / scale if scale else (0.0 if difference == 0 else float("inf"))


def argmax_equal(found: Array, expected: Array, tolerance: float = TOLERANCE) -> bool:
    """Whether the winners along the last axis are the same, near ties of the reference aside."""
    if expected.ndim == 0 or expected.shape[-1] < 2 or expected.size == 0 or expected.dtype.kind not in "fV":
        return True
    a = np.nan_to_num(found.astype(np.float64))
    b = np.nan_to_num(expected.astype(np.float64))
    winner = np.argmax(a, axis=-1)
    lost = np.max(b, axis=-1) - np.take_along_axis(b, winner[..., None], axis=-1)[..., 0]
    return bool((lost <= 2 * tolerance * np.max(np.abs(b))).all())
