"""copy and fill: any strides, element sizes, transposes, interleaved channels, tiny and empty shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from harness import Array, check, gaps_untouched, padded, run_everywhere, strided, strides

SIMD = ("generic", "avx2", "avx512")
RNG = np.random.default_rng(13)
TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
DIMS = 6


def random_bits(shape: Sequence[int], elem: int) -> Array:
    return RNG.integers(0, np.iinfo(TYPES[elem]).max, shape, TYPES[elem], endpoint=True)


def fields(x: Array, y: Array) -> dict[str, int | list[int]]:
    return {
        "elem": x.itemsize, "ndim": x.ndim, "shape": padded(x.shape, DIMS), "x_stride": padded(strides(x), DIMS),
        "y_stride": padded(strides(y), DIMS),
    }  # fmt: skip


def compare(x: Array, y: Array) -> None:
    assert x.shape == y.shape
    for name in run_everywhere("copy", fields(x, y), {"x": x, "y": y}, SIMD):
        assert np.array_equal(x, y), name
        assert gaps_untouched(y), name


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [*range(0, 36), 63, 64, 65, 127, 128, 129, 255, 257, 1000, 5000])
def test_contiguous(n: int, elem: int) -> None:
    compare(random_bits((n,), elem), np.empty(n, TYPES[elem]))


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
@pytest.mark.parametrize("run", [1, 2, 3, 5, 8, 13, 32, 100])
def test_rows_with_gaps(run: int, elem: int) -> None:
    x = random_bits((3, 7, run + 2), elem)[:, :, 1 : run + 1]
    y = np.empty((3, 8, run + 1), TYPES[elem])[:, :7, :run]
    compare(x, y)
    compare(x[::-1], y)
    compare(x[:, ::-2, ::-1], y[:, ::2])


@pytest.mark.parametrize("elem", [4, 8, 1])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 15, 16, 17, 40])
@pytest.mark.parametrize("cols", [1, 2, 3, 4, 7, 8, 9, 16, 31, 33, 70])
def test_transpose(rows: int, cols: int, elem: int) -> None:
    compare(random_bits((cols, rows), elem).T, np.empty((rows, cols), TYPES[elem]))
    x = random_bits((2, cols, 3, rows + 1), elem)[..., :rows].transpose(0, 2, 3, 1)
    compare(x, np.empty((2, 3, rows, cols + 2), TYPES[elem])[..., :cols])


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("pixels", [1, 2, 7, 8, 15, 16, 17, 31, 32, 50, 224])
def test_channels_first_and_last(pixels: int, channels: int) -> None:
    for gap in (0, 3):
        planes = random_bits((2, channels, pixels + gap), 4)[..., :pixels]
        compare(planes.transpose(0, 2, 1), np.empty((2, pixels, channels), np.uint32))
        compare(planes.transpose(0, 2, 1), np.empty((2, pixels, channels + gap), np.uint32)[..., :channels])
        pixel = random_bits((2, pixels, channels), 4)
        compare(pixel.transpose(0, 2, 1), np.empty((2, channels, pixels + gap), np.uint32)[..., :pixels])


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
def test_expansion(elem: int) -> None:
    x = random_bits((5, 1, 7), elem)
    compare(np.broadcast_to(x, (5, 4, 7)), np.empty((5, 4, 7), TYPES[elem]))
    compare(np.broadcast_to(x[:, :, :1], (5, 4, 37)), np.empty((5, 4, 37), TYPES[elem]))
    compare(np.broadcast_to(x[0, 0, 0], (3, 2, 2)), np.empty((3, 2, 2), TYPES[elem]))


def test_scalars_and_empty_shapes() -> None:
    compare(random_bits((), 4), np.empty((), np.uint32))
    compare(random_bits((1, 1, 1), 8), np.empty((1, 1, 1), np.uint64))
    compare(random_bits((3, 0, 2), 4), np.empty((3, 0, 2), np.uint32))
    compare(random_bits((0, 2), 4).reshape(2, 0).T, np.empty((0, 2), np.uint32))


@pytest.mark.parametrize("seed", range(150))
def test_any_strides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    elem = int(rng.choice([1, 2, 4, 4, 4, 8]))
    rank = int(rng.integers(1, 7))
    shape = [int(s) for s in rng.integers(1, 7 if rank > 3 else 20, rank)]
    x, y = strided(rng, shape, TYPES[elem]), strided(rng, shape, TYPES[elem])
    x[...] = random_bits(shape, elem)
    x = x[tuple(slice(None, None, -1 if rng.random() < 0.2 else 1) for _ in shape)]
    compare(x, y)


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 15, 16, 31, 63, 65, 200, 3000])
def test_fill(n: int, elem: int) -> None:
    value = int(random_bits((), elem)) | 1
    for y in (
        np.empty(n, TYPES[elem]), np.empty((3, n + 1), TYPES[elem])[:, :n], np.empty((n, 3), TYPES[elem]).T,
        np.empty((2, n, 2), TYPES[elem])[:, ::-1, 1],
    ):  # fmt: skip
        bits = value - (1 << 64) if value >> 63 else value
        problem = {
            "elem": elem, "ndim": y.ndim, "shape": padded(y.shape, DIMS), "y_stride": padded(strides(y), DIMS),
            "bits": bits,
        }  # fmt: skip
        for name in run_everywhere("fill", problem, {"y": y}, SIMD):
            assert np.all(y == value), name
            assert gaps_untouched(y), name


BAD = [
    {"elem": 3}, {"elem": 8}, {"ndim": 7}, {"ndim": -1}, {"shape": [5, 5, 0, 0, 0, 0]}, {"shape": [4, -1, 0, 0, 0, 0]},
    {"y_stride": [0, 1, 0, 0, 0, 0]}, {"y_stride": [6, 1, 0, 0, 0, 0]}, {"y_stride": [-5, 1, 0, 0, 0, 0]},
    {"ndim": 3, "shape": [4, 5, 1 << 31, 0, 0, 0]},
    {"ndim": 4, "shape": [1 << 31, 1 << 31, 0, 1, 0, 0], "y_stride": [1, 1, 1, 1, 0, 0]},
    {"y_stride": [1 << 62, 1, 0, 0, 0, 0]},
]  # fmt: skip


@pytest.mark.parametrize("change", [*BAD, {"x_stride": [6, 1, 0, 0, 0, 0]}, {"x_stride": [5, -1, 0, 0, 0, 0]}])
def test_copy_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    x, y = np.zeros((4, 5), np.float32), np.zeros((4, 5), np.float32)
    check("copy", fields(x, y), {"x": x, "y": y})
    with pytest.raises(ValueError):
        check("copy", fields(x, y) | change, {"x": x, "y": y})


@pytest.mark.parametrize("change", BAD)
def test_fill_refuses_what_leaves_its_memory(change: dict[str, int]) -> None:
    y = np.zeros((4, 5), np.float32)
    good = {"elem": 4, "ndim": 2, "shape": [4, 5, 0, 0, 0, 0], "y_stride": [5, 1, 0, 0, 0, 0], "bits": 0}
    check("fill", good, {"y": y})
    with pytest.raises(ValueError):
        check("fill", good | change, {"y": y})
