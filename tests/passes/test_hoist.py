"""Element-wise operators move before a Reshape or Transpose, and are then part of what comes before it."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node

R = np.random.default_rng(4)
C = {
    "w": R.standard_normal((4, 3, 1, 1)).astype(np.float32),
    "k": np.float32(0.3),
    "row": R.standard_normal((4, 1)).astype(np.float32),
    "full": R.standard_normal((1, 4, 30)).astype(np.float32),
    "shape": np.array([1, 4, 30]),
    "squeezed": np.array([4, 5, 6]),
    "column": R.standard_normal((4, 1, 1)).astype(np.float32),
}
CONV = node("Conv", "x w", "a")
X = {"x": (1, 3, 5, 6)}


def test_activation_before_a_reshape():
    agrees(net([CONV, node("Reshape", "a shape", "r"), node("Relu", "r", "y")], X, ["y"], C), {"Conv": 1, "reshape": 1})


def test_bias_and_activation_before_a_transpose():
    nodes = [
        CONV,
        node("Transpose", "a", "t", perm=[0, 2, 3, 1]),
        node("Add", "t bias", "s"),
        node("Sigmoid", "s", "y"),
    ]
    constants = {**C, "bias": C["row"].reshape(4)}
    agrees(net(nodes, X, ["y"], constants), {"Conv": 1, "transpose": 1})


def test_bias_before_dropping_a_dimension():
    nodes = [CONV, node("Reshape", "a squeezed", "r"), node("Add", "column r", "s"), node("Tanh", "s", "y")]
    agrees(net(nodes, X, ["y"], C), {"Conv": 1, "reshape": 1})


def test_several_in_a_row_and_a_negation():
    nodes = [
        CONV,
        node("Transpose", "a", "t", perm=[0, 2, 3, 1]),
        node("Unsqueeze", "t axes", "u"),
        node("Neg", "u", "n"),
        node("Mul", "n k", "m"),
        node("Relu", "m", "y"),
    ]
    agrees(net(nodes, X, ["y"], {**C, "axes": np.array([0])}), {"Conv": 1, "transpose": 1, "reshape": 1})


@pytest.mark.parametrize("case", ["constant of other dimensions", "read by others", "an output", "a computed operand"])
def test_what_stays(case):
    nodes, outputs = [CONV, node("Reshape", "a shape", "r")], ["y"]
    if case == "constant of other dimensions":
        nodes.append(node("Add", "r full", "y"))
    elif case == "read by others":
        nodes += [node("Relu", "r", "p"), node("MatMul", "p q", "z"), node("Transpose", "r", "q", perm=[0, 2, 1])]
        nodes[-2:] = nodes[:-3:-1]
        outputs = ["z"]
    elif case == "an output":
        nodes.append(node("Relu", "r", "y"))
        outputs = ["y", "r"]
    else:
        nodes += [node("Sin", "r", "s"), node("Mul", "r s", "y")]
    agrees(net(nodes, X, outputs, C))
