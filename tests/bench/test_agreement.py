"""When two implementations agree."""

import numpy as np
import pytest

from zoi.bench.agreement import Agreement, compare, error_of


def test_equal_outputs_agree():
    y = np.random.default_rng(0).standard_normal((2, 5)).astype(np.float32)
    assert compare({"y": y}, {"y": y}) == Agreement(0.0, True, "")


def test_the_error_is_over_the_scale_of_the_output():
    reference = np.array([0.0, 200.0], np.float32)
    assert error_of(np.array([0.01, 200.0], np.float32), reference) == pytest.approx(5e-5)


@pytest.mark.parametrize("found", [[1.0, np.nan], [np.inf, 2.0]])
def test_what_is_not_finite_must_be_the_same(found):
    reference = np.array([1.0, 2.0], np.float32)
    assert error_of(np.array(found, np.float32), reference) == np.inf
    assert error_of(reference, np.array(found, np.float32)) == np.inf
    assert error_of(np.array(found, np.float32), np.array(found, np.float32)) == 0


def test_a_missing_output_or_another_shape_or_type_is_an_infinite_error():
    y = np.zeros((1, 2), np.float32)
    for found in ({}, {"y": y[0]}, {"y": y.astype(np.float64)}):
        assert not compare(found, {"y": y}).ok


def test_another_winner_disagrees_unless_it_is_a_near_tie():
    reference = {"y": np.array([[0.5, 0.5 + 1e-6, 0.1]], np.float32)}
    assert compare({"y": np.array([[0.5 + 1e-6, 0.5, 0.1]], np.float32)}, reference).ok
    swapped = compare({"y": np.array([[0.6, 0.5, 0.1]], np.float32)}, {"y": np.array([[0.5, 0.6, 0.1]], np.float32)})
    assert not swapped.argmax_equal


def test_integers_and_booleans_must_be_equal():
    assert error_of(np.array([True, False]), np.array([True, False])) == 0
    assert error_of(np.array([1, 2]), np.array([1, 3])) == np.inf


def test_of_two_comparisons_the_worse_is_kept():
    a, b = Agreement(1e-6, False, "x"), Agreement(1e-5, True, "y")
    assert a.merge(b) == b.merge(a) == Agreement(1e-5, False, "y")
