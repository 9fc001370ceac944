"""zoi.Attention is found in the forms that exporters write, and only where it computes the same."""

import numpy as np
import pytest

from tests.passes.nets import agrees, feeds_of, net, node, ops

C = {
    "scale": np.float32(0.3),
    "hidden": np.float32(-1e9),
    "minus": np.float32(-np.inf),
    "axes": np.array([1, 2]),
    "apart": np.array([1, 6, 2, 4]),
    "together": np.array([1, 6, 8]),
}
SHAPES = {"q": (2, 3, 5, 4), "k": (2, 3, 7, 4), "v": (2, 3, 7, 6)}
KEYS = node("Transpose", "k", "kt", perm=[0, 1, 3, 2])
END = [node("Softmax", "z", "p", axis=-1), node("MatMul", "p v", "y")]

FORMS = {
    "scale": [KEYS, node("MatMul", "q kt", "a"), node("Mul", "a scale", "z")],
    "divided": [KEYS, node("MatMul", "q kt", "a"), node("Div", "a scale", "z")],
    "no scale": [KEYS, node("MatMul", "q kt", "z")],
    "mask": [KEYS, node("MatMul", "q kt", "a"), node("Mul", "scale a", "b"), node("Add", "m b", "z")],
    "scaled queries": [KEYS, node("Mul", "q scale", "qs"), node("MatMul", "qs kt", "z")],
    "scaled keys": [
        node("Mul", "k scale", "ks"),
        node("Transpose", "ks", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q kt", "z"),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_found(form):
    inputs = {**SHAPES, "m": (1, 1, 5, 7)} if form == "mask" else SHAPES
    model = net([*FORMS[form], *END], inputs, ["y"], C)
    assert ops(model)["Attention"] == 1 and "Softmax" not in ops(model)
    agrees(model)


@pytest.mark.parametrize("hidden", ["hidden", "minus"])
@pytest.mark.parametrize("all_hidden", [False, True])
def test_scores_hidden_by_a_choice(hidden, all_hidden):
    nodes = [KEYS, node("MatMul", "q kt", "a"), node("Where", f"h {hidden} a", "z"), *END]
    model = net(nodes, {**SHAPES, "h": ((2, 1, 1, 7), "bool")}, ["y"], C)
    assert ops(model)["Attention"] == 1
    feeds = feeds_of(model)
    feeds["h"][...] = [False, True, False, False, True, True, False]
    feeds["h"][0] = all_hidden
    agrees(model, feeds=feeds)


def test_heads_in_rows():
    """Split into heads by Reshape and Transpose, joined again: all of it views."""
    nodes = [
        node("Reshape", "x apart", "r"),
        node("Transpose", "r", "q", perm=[0, 2, 1, 3]),
        node("Transpose", "r", "kt", perm=[0, 2, 3, 1]),
        node("MatMul", "q kt", "z"),
        node("Softmax", "z", "p", axis=-1),
        node("MatMul", "p q", "o"),
        node("Transpose", "o", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t together", "y"),
    ]
    model = net(nodes, {"x": (1, 6, 8)}, ["y"], C)
    assert ops(model)["Attention"] == 1
    agrees(model)


@pytest.mark.parametrize(
    "nodes",
    [
        [*FORMS["scale"], node("Softmax", "z", "p", axis=-2), END[1]],
        [*FORMS["scale"], node("LogSoftmax", "z", "p", axis=-1), END[1]],
        [KEYS, node("MatMul", "q kt", "a"), node("Sin", "a", "z"), *END],
        [KEYS, node("MatMul", "q kt", "a"), node("Add", "a scale", "b"), node("Mul", "b scale", "z"), *END],
    ],
    ids=["another axis", "logarithm", "another operator", "scaled after the mask"],
)
def test_not_found(nodes):
    model = net(nodes, SHAPES, ["y"], C)
    assert "Attention" not in ops(model)
    agrees(model)


def test_weights_that_are_read_stay():
    model = net([*FORMS["scale"], *END], SHAPES, ["y", "p"], C)
    assert "Attention" not in ops(model)
    agrees(model)
