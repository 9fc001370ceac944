"""Padding becomes a window's own only where the results stay the same."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node

X = {"x": (1, 3, 6, 7)}
PADS = np.array([0, 0, 1, 1, 0, 0, 1, 2])


def padded(before, fill, op, by=PADS, **window):
    """A net that pads by a number, then slides a window of 3 x 3."""
    nodes = [
        *([node(before, "x", "h")] if before else []),
        node("Pad", f"{'h' if before else 'x'} p v", "w"),
        node(op, "w", "y", kernel_shape=[3, 3], **window),
    ]
    return net(nodes, X, ["y"], {"p": by, "v": np.float32(fill)})


@pytest.mark.parametrize("window", [{}, {"strides": [2, 2]}, {"strides": [2, 3], "ceil_mode": 1}])
def test_zeros_before_an_average(window):
    agrees(padded(None, 0, "AveragePool", **window), {"averagepool": 1})


def test_padding_twice_before_an_average_that_counts_it():
    agrees(padded(None, 0, "AveragePool", pads=[1, 1, 1, 1], count_include_pad=1), {"averagepool": 1})


def test_an_average_that_does_not_count_its_own_padding_stays():
    agrees(padded(None, 0, "AveragePool", pads=[1, 1, 1, 1]), {"pad": 1, "averagepool": 1})


def test_other_numbers_before_an_average_stay():
    agrees(padded(None, 0.5, "AveragePool"), {"pad": 1, "averagepool": 1})


@pytest.mark.parametrize("before", ["Relu", "Sigmoid"])
def test_zeros_before_a_maximum_of_what_is_never_less(before):
    agrees(padded(before, 0, "MaxPool", strides=[2, 2]), {"Pointwise": 1, "maxpool": 1})


def test_zeros_before_a_maximum_of_anything_stay():
    agrees(padded(None, 0, "MaxPool"), {"pad": 1, "maxpool": 1})


def test_the_lowest_before_a_maximum():
    agrees(padded(None, -np.inf, "MaxPool"), {"maxpool": 1})


@pytest.mark.parametrize("pads", [[0, 0, 3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 3]])
def test_windows_of_padding_alone_stay(pads):
    agrees(padded("Relu", 0, "MaxPool", by=np.array(pads)), {"Pointwise": 1, "pad": 1, "maxpool": 1})


def test_padding_that_others_read_stays():
    nodes = [node("Pad", "x p", "w"), node("AveragePool", "w", "y", kernel_shape=[3, 3])]
    agrees(net(nodes, X, ["y", "w"], {"p": PADS}), {"pad": 1, "averagepool": 1})
