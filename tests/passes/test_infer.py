"""Shapes and constants are found in one walk; known branches are taken."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.passes.nets import agrees, net, node, ops
from zoi.errors import ModelError, UnsupportedOperator
from zoi.passes import simplify


def test_shape_arithmetic_folds():
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axes", "u"),
        node("Concat", "u minus", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "minus": np.array([-1])}
    agrees(net(nodes, {"x": (2, 3, 4)}, ["y"], constants), {"reshape": 1})


def test_a_constant_output():
    nodes = [node("Shape", "x", "y"), node("Relu", "x", "z")]
    agrees(net(nodes, {"x": (2, 3)}, {"y": "int64", "z": "float32"}))


def test_an_output_that_is_an_input():
    agrees(net([node("Identity", "x", "y"), node("Identity", "x", "z")], {"x": (2, 3)}, ["y", "z"]))


def test_a_value_that_is_two_outputs():
    agrees(net([node("Relu", "x", "y"), node("Identity", "y", "z")], {"x": (2, 3)}, ["y", "z"]))


def branches(condition_nodes, inputs, constants):
    """An If inside an If, both branches reading values from outside."""

    def graph(nodes, name):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)])

    inner = helper.make_node(
        "If",
        ["c"],
        ["a_y"],
        then_branch=graph([node("Sin", "x", "p_y")], "p"),
        else_branch=graph([node("Cos", "x", "q_y")], "q"),
    )
    outer = helper.make_node(
        "If", ["c"], ["y"], then_branch=graph([inner], "a"), else_branch=graph([node("Exp", "x", "b_y")], "b")
    )
    return net([*condition_nodes, outer, node("Neg", "y", "z")], {"x": (2, 3), **inputs}, ["y", "z"], constants)


@pytest.mark.parametrize("rate", [8000, 16000])
def test_branches_on_a_fixed_input(rate):
    model = branches([node("Equal", "sr k", "c")], {"sr": ((), "int64")}, {"k": np.array(16000)})
    feeds = {"x": np.ones((2, 3), np.float32), "sr": np.array(rate)}
    agrees(model, {"Pointwise": 2}, feeds=feeds, fix={"sr": rate})


def test_branches_on_a_computed_condition_are_refused():
    model = branches([node("ReduceMax", "x", "m", keepdims=0), node("Greater", "m k", "c")], {}, {"k": np.float32(0)})
    with pytest.raises(UnsupportedOperator, match=r"If.*`fix`"):
        simplify(model)


def test_shapes_known_only_at_run_time_are_refused():
    model = net([node("NonZero", "x", "n"), node("Cast", "n", "y", to=1)], {"x": (2, 3)}, ["y"])
    with pytest.raises(ModelError, match=r"NonZero.*depends on values known only when the model runs"):
        simplify(model)


def test_shapes_that_do_not_fit():
    with pytest.raises(ModelError, match=r"Add.*\[2, 3\], \[4, 3\] do not broadcast"):
        simplify(net([node("Add", "x z", "y")], {"x": (2, 3), "z": (4, 3)}, ["y"]))
    model = net([node("MatMul", "x z", "y", name="product")], {"x": (2, 3), "z": (4, 3)}, ["y"])
    with pytest.raises(ModelError, match=r"'product'.*MatMul"):
        simplify(model)


@pytest.mark.parametrize("op", ["ConstantOfShape", "Range"])
def test_constants_too_large_are_refused(op):
    constants = {"n": np.array([1 << 40]), "zero": np.array(0), "one": np.array(1), "end": np.array(1 << 40)}
    build = node("ConstantOfShape", "n", "c") if op == "ConstantOfShape" else node("Range", "zero end one", "c")
    model = net(
        [build, node("ReduceSum", "c", "s", keepdims=0), node("Cast", "s", "t", to=1), node("Add", "x t", "y")],
        {"x": (2,)},
        ["y"],
        constants,
    )
    with pytest.raises(ModelError, match=r"elements"):
        simplify(model)


def test_dead_nodes_are_not_even_looked_at():
    nodes = [helper.make_node("Unheard", ["x"], ["d"], domain="of"), node("Relu", "x", "y")]
    assert ops(net(nodes, {"x": (2,)}, ["y"], domains=["of"])) == {"Pointwise": 1}


def test_definitions_are_expanded():
    nodes = [node("CenterCropPad", "x n", "y")]
    agrees(net(nodes, {"x": (6, 5)}, ["y"], {"n": np.array([4, 3])}, opset=18))


def test_a_large_constant_of_one_number_is_not_stored():
    nodes = [node("ConstantOfShape", "n", "c"), node("Add", "x c", "y")]
    model = net(nodes, {"x": (1, 1)}, ["y"], {"n": np.array([3000, 2000])})
    simple = simplify(model)
    assert max(v.const_value.size for v in simple.graph.initializers.values()) <= 2
    agrees(model, {"expand": 1, "Pointwise": 1})
