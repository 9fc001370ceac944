"""Values of the GPU's small types in NumPy: their bits, their meaning in float64, their rounding unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

STORAGE: dict[str, type[np.generic]] = {
    "bf16": np.uint16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "u8": np.uint8, "e4m3": np.uint8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24, "e4m3": 2.0**-4, "i8": 0.0, "i32": 0.0}
"""The largest relative error of rounding to nearest."""


def _e4m3_values() -> npt.NDArray[np.float64]:
    codes = np.arange(256)
    exponent, fraction = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    magnitude = np.where((codes & 127) == 127, np.nan, magnitude)
    return np.where(codes & 128, -magnitude, magnitude)


E4M3 = _e4m3_values()


def decode(bits: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """What stored bits mean, exactly."""
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "e4m3":
        return np.asarray(E4M3[bits], np.float64)
    return bits.astype(np.float64)


def encode(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Rounds to the nearest value of the type (ties to even); what is too large saturates in e4m3."""
    if dtype == "bf16":
        with np.errstate(over="ignore"):
            bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
    if dtype == "e4m3":
        table = E4M3[:127]
        magnitude = np.minimum(np.abs(values), 448.0)
        high = np.searchsorted(table, magnitude).clip(1, 126)
        down, up = magnitude - table[high - 1], table[high] - magnitude
        code = np.where((down < up) | ((down == up) & (high % 2 == 1)), high - 1, high).astype(np.uint8)
        code = np.where(np.isnan(values), np.uint8(127), code)
        return np.where(np.signbit(values), code | 128, code).astype(np.uint8)
    with np.errstate(over="ignore"):
        return values.astype(STORAGE[dtype])
