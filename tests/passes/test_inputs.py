"""Shapes and fixed values: what fits is applied everywhere, what does not is refused."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node
from zoi.errors import InputError
from zoi.passes import simplify

OPEN = net([node("Add", "x z", "y")], {"x": ("n", 3), "z": ("n", 3)}, ["y"])
SWITCH = net([node("Mul", "x k", "y")], {"x": (2, 3), "k": ((), "float32")}, ["y"])


def inputs(model, **arguments):
    return {v.name: tuple(v.shape) for v in simplify(model, **arguments).graph.inputs}


def test_one_shape_tells_the_other():
    assert inputs(OPEN, shapes={"x": (4, 3)}) == {"x": (4, 3), "z": (4, 3)}


def test_a_fixed_input_is_no_input():
    assert list(inputs(SWITCH, fix={"k": 2})) == ["x"]
    agrees(SWITCH, {"Pointwise": 1}, fix={"k": 2})


def test_a_fixed_input_that_is_an_output():
    model = net([node("Relu", "x", "y")], {"x": (2, 3), "k": (1,)}, ["y", "k"])
    agrees(model, fix={"k": [3.0]}, feeds={"x": np.ones((2, 3), np.float32), "k": np.zeros(1, np.float32)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "'x': shape .*n.*shapes="),
        ({"shapes": {"q": (1, 3)}}, "no input named 'q'"),
        ({"shapes": {"x": (4, 5)}}, r"shape \[4, 5\] given"),
        ({"shapes": {"x": (4,)}}, r"shape \[4\] given"),
        ({"shapes": {"x": (-1, 3)}}, r"shape \[-1, 3\] given"),
        ({"shapes": {"x": (4, 3), "z": (5, 3)}}, "'n' is 5 here and 4"),
        ({"shapes": {"x": (4, 3)}, "fix": {"x": np.zeros((4, 3))}}, "both"),
        ({"fix": {"x": "text"}}, "does not fit"),
    ],
)
def test_what_does_not_fit(arguments, message):
    with pytest.raises(InputError, match=message):
        simplify(OPEN, **arguments)


def test_a_value_that_the_type_cannot_hold():
    model = net([node("Cast", "k", "y", to=1)], {"k": ((1,), "int64")}, ["y"])
    with pytest.raises(InputError, match="does not fit type int64"):
        simplify(model, fix={"k": [0.5]})
