"""Views agree with NumPy's, and never claim more than NumPy can do without a copy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zoi.passes.lower.tensor import Tensor, channels_last, collapse, dense_strides, reshape_strides, single_stride


def of(array: np.ndarray) -> Tensor:
    """The view that a NumPy view of a flat buffer is."""
    strides = tuple(s // array.itemsize for s in array.strides)
    return Tensor(0, 0, array.shape, strides, array.dtype)


def elements(tensor: Tensor, memory: np.ndarray) -> np.ndarray:
    strides = [s * memory.itemsize for s in tensor.strides]
    return np.lib.stride_tricks.as_strided(memory[tensor.offset :], tensor.shape, strides)


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_reshape_is_the_same_elements_or_refused(data: st.DataObject) -> None:
    shape = data.draw(shapes)
    perm = data.draw(st.permutations(range(len(shape))))
    memory = np.arange(math.prod(shape))
    view = memory.reshape(shape).transpose(perm)
    factors = data.draw(st.sampled_from(_factorings(memory.size)))
    result = of(view).reshape(factors)
    try:
        expected = view.view()
        expected.shape = factors
    except AttributeError:
        assert result is None
    else:
        assert result is not None
        np.testing.assert_array_equal(elements(result, memory), expected)


def _factorings(n: int) -> list[tuple[int, ...]]:
    pairs = [(a, n // a) for a in range(1, n + 1) if n % a == 0]
    return [
        (n,),
        *pairs,
        *((a, 1, b) for a, b in pairs),
        *((a, c, b // c) for a, b in pairs for c in (2, 3) if b % c == 0),
    ]


@settings(max_examples=200, deadline=None)
@given(shapes, st.randoms())
def test_collapse_walks_the_same_elements(shape: tuple[int, ...], random) -> None:
    perm = list(range(len(shape)))
    random.shuffle(perm)
    strides = [dense_strides(shape), dense_strides(shape, perm), tuple(0 for _ in shape)]
    sizes, steps = collapse(shape, strides)
    for before, after in zip(strides, steps, strict=True):
        walk = sum(i * s for i, s in zip(np.indices(shape), before, strict=True))
        merged = sum(i * s for i, s in zip(np.indices(sizes), after, strict=True))
        np.testing.assert_array_equal(np.ravel(walk), np.ravel(merged))


def test_collapse_of_a_contiguous_tensor_is_one_dimension() -> None:
    assert collapse((2, 1, 3, 4), [dense_strides((2, 1, 3, 4))]) == ([24], [[1]])


def test_channels_last_order_and_strides() -> None:
    strides = dense_strides((2, 3, 4, 5), channels_last(4))
    assert strides == (60, 1, 15, 3)
    assert Tensor(0, 0, (2, 3, 4, 5), strides, np.float32).order == (0, 2, 3, 1)


def test_size_one_dimensions_do_not_prevent_a_flat_view() -> None:
    pooled = Tensor(0, 0, (1, 64, 1, 1), (64, 1, 64, 64), np.float32)
    assert pooled.is_contiguous
    flat = pooled.reshape((1, 64))
    assert flat is not None and flat.strides[1] == 1


def test_slice_of_a_slice_keeps_the_offset() -> None:
    t = Tensor(0, 0, (10, 4), (4, 1), np.float32).slice(0, 8, 4, -2).slice(0, 1, 2)
    assert (t.offset, t.shape, t.strides) == (24, (2, 4), (-8, 1))


@pytest.mark.parametrize("shape", [(3, 0), (0,), (0, 5)])
def test_empty_tensors_reshape_freely(shape: tuple[int, ...]) -> None:
    assert reshape_strides(shape, dense_strides(shape), (0, 7)) == (7, 1)


def test_single_stride() -> None:
    assert single_stride((2, 3), (12, 4)) == (6, 4)
    assert single_stride((2, 3), (13, 4)) is None
    assert single_stride((), ()) == (1, 0)
