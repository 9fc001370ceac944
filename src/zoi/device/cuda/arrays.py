"""Arrays on a GPU as the executor sees them: an address, a shape, strides and a dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "e4m3": 1, "i32": 4, "i64": 8}


@dataclass(frozen=True)
class Array:
    """A strided array on a GPU; strides count elements. `owner` keeps its memory alive."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    owner: object = field(default=None, repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Bytes of all its elements."""
        return prod(self.shape) * BYTES[self.dtype]

    def byte_strides(self) -> tuple[int, ...]:
        """Strides in bytes."""
        return tuple(stride * BYTES[self.dtype] for stride in self.strides)


def dense(pointer: int, shape: Sequence[int], dtype: str, owner: object = None) -> Array:
    """An array whose elements follow each other, the last axis fastest."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return Array(pointer, tuple(shape), tuple(reversed(strides)), dtype, owner)


def from_dlpack(tensor: object, dtype: str | None = None) -> Array:
    """A view of another library's tensor; `dtype` names what its bytes mean where DLPack has no word for it."""
    from zoi import _cuda

    pointer, shape, strides, found, _ = _cuda.view(tensor)
    return Array(pointer, shape, strides, dtype or found, tensor)
