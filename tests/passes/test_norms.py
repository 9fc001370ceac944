"""Layer normalisation in the forms that exporters write, and what zoi.Norm takes in."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node

R = np.random.default_rng(3)
N = 12
C = {
    "two": np.float32(2),
    "eps": np.float32(1e-5),
    "n": np.float32(1 / N),
    "zero": np.float32(0),
    "scale": R.standard_normal(N).astype(np.float32),
    "bias": R.standard_normal(N).astype(np.float32),
    "last": np.array([-1]),
    "shape": np.array([2, 5, 1]),
}


def torch_like(square):
    """Mean, difference, variance, quotient."""
    return [
        node("ReduceMean", "x", "m", axes=[-1]),
        node("Sub", "x m", "d"),
        square,
        node("ReduceMean", "s", "v", axes=[-1]),
        node("Add", "v eps", "e"),
        node("Sqrt", "e", "r"),
        node("Div", "d r", "y"),
    ]


FORMS = {
    "power": torch_like(node("Pow", "d two", "s")),
    "product": torch_like(node("Mul", "d d", "s")),
    "product with the inverse": [
        *torch_like(node("Mul", "d d", "s"))[:-1],
        node("Reciprocal", "r", "i"),
        node("Mul", "d i", "y"),
    ],
    "by sums, variance from squares": [
        node("ReduceSum", "x last", "t", keepdims=0),
        node("Mul", "t n", "mean"),
        node("Mul", "x x", "q"),
        node("ReduceSum", "q last", "u", keepdims=0),
        node("Mul", "u n", "p"),
        node("Mul", "mean mean", "mm"),
        node("Sub", "p mm", "w"),
        node("Max", "w zero", "v"),
        node("Reshape", "mean shape", "m"),
        node("Reshape", "v shape", "vv"),
        node("Sub", "x m", "d"),
        node("Add", "vv eps", "e"),
        node("Sqrt", "e", "r"),
        node("Reciprocal", "r", "i"),
        node("Mul", "i scale", "k"),
        node("Mul", "d k", "y"),
    ],
    "root mean square": [
        node("Mul", "x x", "s"),
        node("ReduceMean", "s", "v", axes=[-1]),
        node("Add", "v eps", "e"),
        node("Sqrt", "e", "r"),
        node("Div", "x r", "y"),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_one_operator(form):
    agrees(net(FORMS[form], {"x": (2, 5, N)}, ["y"], C), {"Norm": 1}, tolerance=1e-4)


@pytest.mark.parametrize("form", ["power", "root mean square"])
def test_scale_and_bias_move_in(form):
    nodes = [*FORMS[form], node("Mul", "y scale", "a"), node("Add", "bias a", "z")]
    agrees(net(nodes, {"x": (2, 5, N)}, ["z"], C), {"Norm": 1}, tolerance=1e-4)


def test_another_axis_stays():
    nodes = [node("ReduceMean", "x", "m", axes=[1]), *FORMS["power"][1:]]
    nodes[3] = node("ReduceMean", "s", "v", axes=[1])
    agrees(net(nodes, {"x": (2, 5, N)}, ["y"], C), tolerance=1e-4)


def test_a_mean_of_something_else_stays():
    nodes = [node("ReduceMean", "z", "m", axes=[-1]), *FORMS["power"][1:]]
    agrees(net(nodes, {"x": (2, 5, N), "z": (2, 5, N)}, ["y"], C), tolerance=1e-4)


@pytest.mark.parametrize("twice", [False, True])
def test_residual_sum_moves_in(twice):
    nodes = [node("Add", "x z", "s"), node("LayerNormalization", "s scale bias", "y")]
    outputs = ["y"]
    if twice:
        nodes.append(node("Mul", "y s", "p"))
        outputs = ["p"]
    found = {"Norm": 1, "Pointwise": 1} if twice else {"Norm": 1}
    agrees(net(nodes, {"x": (2, 5, N), "z": (2, 5, N)}, outputs, C), found, tolerance=1e-4)


def test_several_axes_and_extra_outputs():
    c = {"scale": R.standard_normal((5, N)).astype(np.float32), "bias": R.standard_normal((5, N)).astype(np.float32)}
    nodes = [node("LayerNormalization", "x scale bias", "y", axis=1)]
    agrees(net(nodes, {"x": (2, 5, N)}, ["y"], c), {"reshape": 2, "Norm": 1}, tolerance=1e-4)
    nodes = [node("LayerNormalization", "x scale bias", "y mean", axis=1)]
    agrees(net(nodes, {"x": (2, 5, N)}, ["y", "mean"], c), tolerance=1e-4)


def test_group_and_instance_norm():
    c = {"s": R.standard_normal(6).astype(np.float32), "b": R.standard_normal(6).astype(np.float32)}
    agrees(net([node("InstanceNormalization", "x s b", "y")], {"x": (2, 6, 4, 3)}, ["y"], c), tolerance=1e-4)
    nodes = [node("GroupNormalization", "x s b", "y", num_groups=3)]
    agrees(net(nodes, {"x": (2, 6, 4, 3)}, ["y"], c, opset=21), tolerance=1e-4)
