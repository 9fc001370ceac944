"""simd/math.h: the accuracy of the elementary functions, through the pointwise kernels, over all floats."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from harness import Array, run_everywhere
from test_pointwise import REFERENCE, code, operands, problem

ULP = {"exp": 1.0, "log": 1.0, "tanh": 5.0, "sigmoid": 2.5, "erf": 6.0, "sin": 2.0, "cos": 2.0, "softplus": 4.0}
"""The largest error allowed, in units of the last place of the result."""


def all_floats() -> Array:
    """About a million floats: every 4099th bit pattern, so every exponent, denormals, NaN and infinities."""
    return np.concatenate([np.arange(0, 1 << 32, 4099, dtype=np.uint32).view(np.float32),
                           np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 88.72283, 88.72284, -87.4, -103.97, -104.1]),
                           np.linspace(-12, 12, 200001, dtype=np.float32)])  # fmt: skip


def accurate_erf(x: Array) -> Array:
    return np.fromiter(map(math.erf, x), np.float64, x.size)


def unit_in_the_last_place(y: Array) -> Array:
    return np.exp2(np.maximum(np.frexp(np.abs(y))[1], -125) - 24.0)


@pytest.mark.parametrize("op", ULP)
def test_accuracy(op: str) -> None:
    x = all_floats()
    y = np.empty_like(x)
    reference: Callable[[Array], Array] = accurate_erf if op == "erf" else REFERENCE[op]
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.float64))
        stored = wanted.astype(np.float32)
        for kernel in run_everywhere("pointwise", problem(y, [x], code((op, 0))), operands(y, [x]), ("avx2", "avx512")):
            if kernel.endswith("generic"):
                continue
            assert np.array_equal(np.isnan(y), np.isnan(stored)), kernel
            infinite = np.isinf(stored) | np.isinf(y)
            assert np.array_equal(y[infinite], stored[infinite]), kernel
            finite = np.isfinite(stored)
            error = np.abs(y[finite] - wanted[finite]) / unit_in_the_last_place(wanted[finite])
            assert error.max() <= ULP[op], f"{kernel}: {error.max()} at {x[finite][error.argmax()]}"


@pytest.mark.parametrize("op", ["tanh", "erf", "sigmoid", "sin", "cos"])
def test_bounded_functions_keep_their_bounds(op: str) -> None:
    x = all_floats()
    y = np.empty_like(x)
    for kernel in run_everywhere("pointwise", problem(y, [x], code((op, 0))), operands(y, [x]), ("avx2", "avx512")):
        assert np.nanmax(np.abs(y)) <= 1.0, kernel
