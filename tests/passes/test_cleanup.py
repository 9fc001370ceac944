"""What is computed twice is computed once; moves in a row are one; every value has a name of its own."""

import numpy as np

from tests.passes.nets import agrees, net, node
from zoi.passes import simplify

X = {"x": (2, 3, 4)}


def test_the_same_from_the_same_is_computed_once():
    nodes = [node("Exp", "x", "a"), node("Exp", "x", "b"), node("Softmax", "a", "c"), node("Softmax", "b", "d")]
    agrees(net([*nodes, node("Sub", "c d", "y")], X, ["y"]), {"Softmax": 1, "Pointwise": 2})


def test_other_attributes_are_another_value():
    nodes = [node("Softmax", "x", "a", axis=1), node("Softmax", "x", "b", axis=2), node("Sub", "a b", "y")]
    agrees(net(nodes, X, ["y"]), {"Softmax": 2, "Pointwise": 1})


def test_two_outputs_that_are_the_same_value():
    agrees(net([node("Softmax", "x", "a"), node("Softmax", "x", "b")], X, ["a", "b"]))


def test_moves_there_and_back_are_nothing():
    nodes = [node("Transpose", "x", "a", perm=[2, 0, 1]), node("Transpose", "a", "b", perm=[1, 2, 0])]
    agrees(net([*nodes, node("Exp", "b", "y")], X, ["y"]), {"Pointwise": 1})


def test_two_reshapes_are_one():
    shapes = {"s": np.array([6, 4]), "t": np.array([24])}
    nodes = [node("Reshape", "x s", "a"), node("Reshape", "a t", "b"), node("Softmax", "b", "y")]
    agrees(net(nodes, X, ["y"], shapes), {"reshape": 1, "Softmax": 1})


def test_names_are_unique_and_those_of_inputs_and_outputs_stay():
    nodes = [node("Softmax", "x", "a", name="n"), node("Softmax", "a", "b", axis=1, name="n"), node("Exp", "b", "y")]
    graph = simplify(net(nodes, X, ["y"])).graph
    names = [v.name for n in graph for v in n.outputs]
    assert len(set(names)) == len(names)
    assert [v.name for v in graph.inputs] == ["x"] and [v.name for v in graph.outputs] == ["y"]
