"""Strided views over the program's buffers: how every layout change that can be free is free.

A channels-last image is a tensor whose logical shape stays (N, C, H, W) and whose strides put C innermost. Transpose,
Slice, Expand and most Reshapes only compute new strides; a copy is emitted where a kernel needs another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """Elements of `dtype` at `offset + sum(index * strides)` of a buffer; offset and strides are in elements."""

    buffer: int
    offset: int
    shape: Shape
    strides: Shape
    dtype: npt.DTypeLike

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ref(self) -> tuple[int, int]:
        """The operand reference (buffer, byte offset)."""
        return (self.buffer, self.offset * self.itemsize)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        return _is_dense(self.shape, self.strides, range(len(self.shape)))

    def is_same_memory(self, other: Tensor) -> bool:
        """Whether both walk the same elements in the same way; strides of size-1 dimensions do not matter."""
        walks = zip(self.shape, self.strides, other.strides, strict=True)
        place = (self.buffer, self.offset, self.shape) == (other.buffer, other.offset, other.shape)
        return place and all(n <= 1 or a == b for n, a, b in walks)

    @property
    def order(self) -> Shape:
        """Dimensions from the outermost to the innermost in memory; ties and size-1 dimensions keep their place."""
        rank = len(self.shape)
        real = [d for d in range(rank) if self.shape[d] > 1 and self.strides[d] != 0]
        ranked = iter(sorted(real, key=lambda d: (-abs(self.strides[d]), d)))
        return tuple(next(ranked) if d in real else d for d in range(rank))

    def permute(self, perm: Sequence[int]) -> Tensor:
        return replace(self, shape=tuple(self.shape[p] for p in perm), strides=tuple(self.strides[p] for p in perm))

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> Tensor:
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + (start * strides[axis] if size else 0)
        shape[axis], strides[axis] = size, strides[axis] * step
        return replace(self, offset=offset, shape=tuple(shape), strides=tuple(strides))

    def expand(self, shape: Shape) -> Tensor:
        """Broadcasts to `shape` by NumPy's rules, with strides of 0."""
        pad = len(shape) - len(self.shape)
        strides = (0,) * pad + tuple(
            s if n == m else 0 for n, m, s in zip(self.shape, shape[pad:], self.strides, strict=True)
        )
        return replace(self, shape=shape, strides=strides)

    def reshape(self, shape: Shape) -> Tensor | None:
        """The same elements in row-major order under another shape, or None where that needs a copy."""
        strides = reshape_strides(self.shape, self.strides, shape)
        return None if strides is None else replace(self, shape=shape, strides=strides)


def _is_dense(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    expected = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != expected:
            return False
        expected *= shape[d]
    return True


def dense_strides(shape: Shape, order: Sequence[int] | None = None) -> Shape:
    """Strides without gaps, `order` listing dimensions from outermost to innermost (row-major by default)."""
    strides, step = [0] * len(shape), 1
    for d in reversed(order if order is not None else range(len(shape))):
        strides[d] = step
        step *= shape[d]
    return tuple(strides)


def channels_last(rank: int) -> Shape:
    """(N, spatial..., C)."""
    return (0, *range(2, rank), 1)


def reshape_strides(shape: Shape, strides: Shape, new: Shape) -> Shape | None:
    """Strides of a reshape without a copy, or None. Works on groups of dimensions with equal products."""
    if 0 in shape:
        return dense_strides(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result = [0] * len(new)
    todo = [d for d in range(len(new)) if new[d] != 1]
    i = 0
    while todo:
        group = [todo.pop(0)]
        have, want, j = old[i][0], new[group[0]], i + 1
        while have != want:
            if have < want:
                have *= old[j][0]
                j += 1
            else:
                group.append(todo.pop(0))
                want *= new[group[-1]]
        for k in range(i, j - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        step = old[j - 1][1]
        for d in reversed(group):
            result[d] = step
            step *= new[d]
        i = j
    step = 1
    for d in reversed(range(len(new))):  # size-1 dimensions: what a dense tensor would have
        if new[d] == 1:
            result[d] = step
        else:
            step = result[d] * new[d]
    return tuple(result)


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Merges neighbouring dimensions that every operand walks as one; drops those of size 1.

    Args:
        shape: The common shape, outermost first.
        strides: One list of strides an operand.
    """
    dims = [(n, tuple(s[d] for s in strides)) for d, n in enumerate(shape) if n != 1]
    merged: list[tuple[int, tuple[int, ...]]] = []
    for n, step in dims:
        if merged and all(p == n * s for p, s in zip(merged[-1][1], step, strict=True)):
            merged[-1] = (merged[-1][0] * n, step)
        else:
            merged.append((n, step))
    if not merged:
        merged = [(1, tuple(0 for _ in strides))]
    return [n for n, _ in merged], [[step[i] for _, step in merged] for i in range(len(strides))]


def single_stride(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int] | None:
    """(count, stride) if the dimensions walk memory with one stride, else None."""
    sizes, steps = collapse(shape, [strides])
    return (sizes[0], steps[0][0]) if len(sizes) == 1 else None
