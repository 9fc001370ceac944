"""A softmax that is spelled out becomes one operator, over the right axis, or stays as it is."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node, ops

C = {"axis": np.array([1]), "last": np.array([2]), "shape": np.array([2, 1, 4])}
X = {"x": (2, 3, 4)}


def spelled(axis=1, keep=1, end="Div"):
    """Maximum, difference, exponential, sum, quotient."""
    name = "axis" if axis == 1 else "last"
    nodes = [node("ReduceMax", "x", "m", axes=[axis], keepdims=keep)]
    if not keep:
        nodes.append(node("Reshape", "m shape", "mm"))
    nodes += [node("Sub", f"x {'m' if keep else 'mm'}", "d"), node("Exp", "d", "e")]
    nodes.append(node("ReduceSum", f"e {name}", "s", keepdims=keep))
    if not keep:
        nodes.append(node("Reshape", "s shape", "ss"))
    total = "s" if keep else "ss"
    if end == "Div":
        return [*nodes, node("Div", f"e {total}", "y")]
    return [*nodes, node("Reciprocal", total, "i"), node("Mul", "i e", "y")]


@pytest.mark.parametrize("arguments", [{}, {"axis": 2}, {"keep": 0}, {"end": "Mul"}], ids=str)
def test_found(arguments):
    agrees(net(spelled(**arguments), X, ["y"], C), {"Softmax": 1})


def test_reductions_over_different_axes_stay():
    nodes = spelled()
    nodes[0] = node("ReduceMax", "x", "m", axes=[2], keepdims=1)
    model = net(nodes, X, ["y"], C)
    assert "Softmax" not in ops(model)
    agrees(model)


def test_the_maximum_of_another_value_stays():
    nodes = spelled()
    nodes[0] = node("ReduceMax", "z", "m", axes=[1], keepdims=1)
    model = net(nodes, {**X, "z": (2, 3, 4)}, ["y"], C)
    assert "Softmax" not in ops(model)
    agrees(model)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_early_softmax_flattens(axis):
    agrees(net([node("Softmax", "x", "y", axis=axis)], X, ["y"], opset=11))
