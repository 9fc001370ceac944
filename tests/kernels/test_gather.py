"""gather: rows and elements by index, negative indices, and indices out of range."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, Step, check, dtype_code, gaps_untouched, kernels, run_everywhere

from zoi import _native

SIMD = ("generic", "avx2", "avx512")
RNG = np.random.default_rng(14)
TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def fields(x: Array, index: Array, y: Array) -> dict[str, int]:
    """x is [outer, axis, inner], y [outer, indices, inner]."""
    step = x.itemsize
    return {
        "elem": step, "outer": x.shape[0], "axis": x.shape[1], "inner": x.shape[2], "indices": index.size,
        "index_dtype": dtype_code(index), "x_outer": x.strides[0] // step, "x_axis": x.strides[1] // step,
        "y_outer": y.strides[0] // step, "y_axis": y.strides[1] // step,
    }  # fmt: skip


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("elem", [1, 2, 4, 8])
@pytest.mark.parametrize("inner", [1, 2, 3, 8, 17, 100, 385])
def test_rows(inner: int, elem: int, index_type: type) -> None:
    x = RNG.integers(0, np.iinfo(TYPES[elem]).max, (3, 11, inner + 1), TYPES[elem])[..., :inner]
    index = RNG.integers(-11, 11, 9).astype(index_type)
    y = np.empty((3, 9, inner + 2), TYPES[elem])[..., :inner]
    for name in run_everywhere("gather", fields(x, index, y), {"x": x, "index": index, "y": y}, SIMD):
        assert np.array_equal(y, x[:, index]), name
        assert gaps_untouched(y), name


def test_strides_and_empty_shapes() -> None:
    x = RNG.standard_normal((11, 4, 6)).astype(np.float32).transpose(1, 0, 2)[:, ::-1]
    index = np.array([3, 0, -1], np.int64)
    y = np.empty((3, 4, 6), np.float32).transpose(1, 0, 2)
    for name in run_everywhere("gather", fields(x, index, y), {"x": x, "index": index, "y": y}, SIMD):
        assert np.array_equal(y, x[:, index]), name
    nothing = np.empty((4, 0, 6), np.float32)
    for _ in run_everywhere(
        "gather", fields(x, index[:0], nothing), {"x": x, "index": index[:0], "y": nothing}, SIMD
    ):  # fmt: skip
        pass


@pytest.mark.parametrize("inner", [1, 2, 7])
@pytest.mark.parametrize("bad", [5, -6, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_an_index_out_of_range_fails_the_run_and_gives_zeros(bad: int, inner: int) -> None:
    x = RNG.standard_normal((2, 5, inner)).astype(np.float32)
    index = np.array([4, bad, -5], np.int64)
    y = np.empty((2, 3, inner), np.float32)
    step = Step("gather", fields(x, index, y), {"x": x, "index": index, "y": y})
    wanted = np.stack([x[:, 4], np.zeros_like(x[:, 0]), x[:, 0]], 1)
    for name in kernels("gather"):
        session = _native.Session(_native.Plan(step.program, pick={"step": name}))
        for key, memory in step.inputs.items():
            session.input(key)[...] = memory
        with pytest.raises(ValueError, match="out of range"):
            session.run()
        assert np.array_equal(session.output("y"), wanted.ravel().view(np.uint8)), name


@pytest.mark.parametrize("change", [
    {"elem": 5}, {"elem": 8}, {"outer": 3}, {"axis": 6}, {"inner": 4}, {"indices": 5}, {"index_dtype": 0},
    {"x_outer": 16}, {"x_axis": 4}, {"y_outer": 13}, {"y_outer": 0}, {"y_axis": 0}, {"axis": -1},
    {"outer": 1 << 31, "indices": 1 << 31, "inner": 0},
])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, index, y = np.zeros((2, 5, 3), np.float32), np.zeros(4, np.int32), np.zeros((2, 4, 3), np.float32)
    good = fields(x, index, y)
    check("gather", good, {"x": x, "index": index, "y": y})
    with pytest.raises(ValueError):
        check("gather", good | change, {"x": x, "index": index, "y": y})
