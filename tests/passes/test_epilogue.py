"""Activations and residual sums move into the operator before them."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node, ops
from zoi.passes import simplify

R = np.random.default_rng(2)
W = R.standard_normal((3, 3, 1, 1)).astype(np.float32)
C = {
    "w": W,
    "zero": np.float32(0),
    "half": np.float32(0.5),
    "one": np.float32(1),
    "three": np.float32(3),
    "six": np.float32(6),
    "sixth": np.float32(1 / 6),
    "root": np.float32(np.sqrt(2)),
    "cubic": np.float32(0.044715),
    "two_pi": np.float32(np.sqrt(2 / np.pi)),
}

ACTIVATIONS = {
    "relu": [node("Relu", "a", "y")],
    "relu6": [node("Clip", "a zero six", "y")],
    "sigmoid": [node("Sigmoid", "a", "y")],
    "tanh": [node("Tanh", "a", "y")],
    "leaky": [node("LeakyRelu", "a", "y", alpha=0.3)],
    "elu": [node("Elu", "a", "y", alpha=1.5)],
    "softplus": [node("Softplus", "a", "y")],
    "hard_sigmoid": [node("HardSigmoid", "a", "y", alpha=0.3, beta=0.4)],
    "hard_swish": [node("HardSwish", "a", "y")],
    "silu": [node("Sigmoid", "a", "s"), node("Mul", "s a", "y")],
    "mish": [node("Softplus", "a", "s"), node("Tanh", "s", "t"), node("Mul", "a t", "y")],
    "gelu": [
        node("Div", "a root", "d"),
        node("Erf", "d", "e"),
        node("Add", "one e", "p"),
        node("Mul", "a p", "q"),
        node("Mul", "q half", "y"),
    ],
    "gelu, half first": [
        node("Mul", "half a", "h"),
        node("Div", "a root", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "p"),
        node("Mul", "h p", "y"),
    ],
    "gelu by tanh": [
        node("Mul", "a a", "s"),
        node("Mul", "s a", "c"),
        node("Mul", "cubic c", "k"),
        node("Add", "a k", "i"),
        node("Mul", "i two_pi", "j"),
        node("Tanh", "j", "t"),
        node("Add", "t one", "p"),
        node("Mul", "half a", "h"),
        node("Mul", "h p", "y"),
    ],
    "hard swish by clip": [
        node("Add", "a three", "p"),
        node("Clip", "p zero six", "c"),
        node("Mul", "a c", "m"),
        node("Div", "m six", "y"),
    ],
    "hard swish, scaled first": [
        node("Add", "a three", "p"),
        node("Clip", "p zero six", "c"),
        node("Mul", "c sixth", "m"),
        node("Mul", "m a", "y"),
    ],
    "hard swish by hard sigmoid": [node("HardSigmoid", "a", "h", alpha=1 / 6, beta=0.5), node("Mul", "a h", "y")],
    "hard sigmoid by clip": [
        node("Add", "a three", "p"),
        node("Clip", "p zero six", "c"),
        node("Div", "c six", "y"),
    ],
}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activation_moves_into_conv(kind):
    nodes = [node("Conv", "x w", "a"), *ACTIVATIONS[kind]]
    agrees(net(nodes, {"x": (1, 3, 9, 9)}, ["y"], C), {"Conv": 1})


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activation_on_its_own_is_one_pass(kind):
    agrees(net(ACTIVATIONS[kind], {"a": (1, 3, 9, 9)}, ["y"], C), {"Pointwise": 1})


def test_near_misses_are_left_alone():
    """0.4 instead of 0.5, or another argument of the gate: no GELU, no SiLU, but still right."""
    almost = [*ACTIVATIONS["gelu"][:-1], node("Mul", "q four", "y")]
    model = net(almost, {"a": (1, 3, 9, 9)}, ["y"], {**C, "four": np.float32(0.4)})
    agrees(model, {"Pointwise": 1})
    agrees(net([node("Sigmoid", "a", "s"), node("Mul", "s b", "y")], {"a": (2, 3), "b": (2, 3)}, ["y"]))


def test_residual_then_activation():
    nodes = [node("Conv", "x w", "a"), node("Add", "a x", "s"), node("Relu", "s", "y")]
    model = net(nodes, {"x": (1, 3, 4, 4)}, ["y"], C)
    agrees(model, {"Conv": 1})
    conv = next(iter(simplify(model).graph))
    assert conv.attributes["residual_after"].as_int() == 0 and conv.attributes["act"].as_int() == 1


def test_activation_then_residual():
    nodes = [node("Conv", "x w", "a"), node("Relu", "a", "r"), node("Add", "x r", "y")]
    model = net(nodes, {"x": (1, 3, 4, 4)}, ["y"], C)
    agrees(model, {"Conv": 1})
    assert next(iter(simplify(model).graph)).attributes["residual_after"].as_int() == 1


def test_the_later_of_two_takes_the_sum():
    nodes = [node("Conv", "x w", "a"), node("Conv", "z w", "b"), node("Add", "a b", "y")]
    agrees(net(nodes, {"x": (1, 3, 4, 4), "z": (1, 3, 4, 4)}, ["y"], C), {"Conv": 2})


def test_a_residual_that_is_computed_later():
    nodes = [node("Conv", "x w", "a"), node("Sin", "x", "s"), node("Add", "a s", "y")]
    agrees(net(nodes, {"x": (1, 3, 4, 4)}, ["y"], C), {"Pointwise": 1, "Conv": 1})


def test_depthwise_takes_no_residual():
    nodes = [node("Conv", "x d", "a", group=3), node("Add", "a x", "y")]
    agrees(net(nodes, {"x": (1, 3, 4, 4)}, ["y"], {"d": W[:, :1]}), {"Conv": 1, "Pointwise": 1})


def test_a_sum_with_itself_is_no_residual():
    nodes = [node("Conv", "x w", "a"), node("Add", "a a", "y")]
    model = net(nodes, {"x": (1, 3, 4, 4)}, ["y"], C)
    assert ops(model) == {"Conv": 1, "Pointwise": 1}
    agrees(model)


def test_matmul_takes_scale_and_sum():
    nodes = [node("MatMul", "x z", "a"), node("Mul", "a half", "b"), node("Add", "m b", "y")]
    agrees(net(nodes, {"x": (2, 3, 4), "z": (2, 4, 5), "m": (1, 3, 5)}, ["y"], C), {"MatMul": 1})
