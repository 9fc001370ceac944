"""Chains of element-wise operators become one pass, within what an instruction list holds, in the right type."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.nets import agrees, net, node, ops
from zoi.passes import simplify
from zoi.passes.pointwise import MAX_CODE, MAX_IMMEDIATES, MAX_INPUTS


def test_a_chain_is_one_pass():
    nodes = [node("Sin", "x", "a"), node("Add", "a z", "b"), node("Mul", "b b", "c"), node("Sub", "c a", "y")]
    agrees(net(nodes, {"x": (2, 3), "z": (3,)}, ["y"]), {"Pointwise": 1})


def test_a_smaller_part_is_computed_once():
    nodes = [node("Sin", "z", "a"), node("Add", "a x", "y")]
    agrees(net(nodes, {"x": (2, 3), "z": (3,)}, ["y"]), {"Pointwise": 2})


def test_a_value_that_others_read_is_stored():
    nodes = [node("Sin", "x", "a"), node("Exp", "a", "y"), node("MatMul", "a a", "z")]
    agrees(net(nodes, {"x": (3, 3)}, ["y", "z"]), {"Pointwise": 2, "MatMul": 1})


@pytest.mark.parametrize("length", [MAX_CODE, MAX_CODE + 1, 3 * MAX_CODE])
def test_long_chains_are_cut(length):
    nodes = [node("Sin", f"v{i}", f"v{i + 1}") for i in range(length)]
    model = net(nodes, {"v0": (4,)}, [f"v{length}"])
    agrees(model, {"Pointwise": -(-length // MAX_CODE)})


@pytest.mark.parametrize(("count", "constant"), [(MAX_INPUTS + 3, False), (MAX_IMMEDIATES + 3, True)])
def test_many_operands_are_cut(count, constant):
    nodes = [node("Add", f"s{i} x{i}", f"s{i + 1}") for i in range(count)]
    values = {f"x{i}": (4,) for i in range(count)}
    constants = {f"x{i}": np.float32(i + 0.5) for i in range(count)} if constant else {}
    model = net(nodes, {"s0": (4,), **({} if constant else values)}, [f"s{count}"], constants)
    agrees(model, {"Pointwise": 2})


def test_types_meet_only_at_the_edges():
    nodes = [
        node("Add", "i one", "a"),
        node("Cast", "a", "f", to=1),
        node("Mul", "f x", "m"),
        node("Cast", "m", "j", to=7),
        node("Mod", "j three", "k"),
        node("Cast", "k", "y", to=1),
    ]
    constants = {"one": np.array(1), "three": np.array(3)}
    model = net(nodes, {"i": ((4,), "int64"), "x": (4,)}, ["y"], constants)
    agrees(model)
    kinds = [n.attributes["compute"].as_string() for n in simplify(model).graph]
    assert kinds == ["i64", "f32", "i64", "f32"]


def test_truth_values_mix_with_numbers():
    nodes = [node("Greater", "x z", "g"), node("Not", "g", "n"), node("Or", "n b", "o"), node("Where", "o x z", "y")]
    agrees(net(nodes, {"x": (2, 3), "z": (3,), "b": ((2, 1), "bool")}, ["y"]), {"Pointwise": 1})


def test_large_integers_stay_exact():
    big = (1 << 62) + 1
    model = net([node("Sub", "x k", "y")], {"x": ((2,), "int64")}, {"y": "int64"}, {"k": np.array(big)})
    agrees(model, feeds={"x": np.array([big, big + 5])})


def test_float_to_bool_is_not_zero():
    nodes = [node("Cast", "x", "b", to=9), node("Cast", "b", "y", to=1)]
    agrees(net(nodes, {"x": (4,)}, ["y"]), {"Pointwise": 1}, feeds={"x": np.array([0, 0.3, -0.2, 2], np.float32)})


UNARY = ["Abs", "Neg", "Sin", "Cos", "Tanh", "Sigmoid", "Relu", "Exp", "Erf", "Floor", "Softplus", "Elu", "LeakyRelu"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_graphs(data):
    """Any graph of element-wise operators gives what ONNX Runtime gives, however it was cut into passes."""
    shapes = [(3, 4), (4,), (3, 1), (1,)]
    values = [(f"x{i}", shape) for i, shape in enumerate(shapes)]
    nodes, constants = [], {"k0": np.float32(0.7), "k1": np.full((1, 4), -1.3, np.float32)}
    values += [("k0", ()), ("k1", (1, 4))]
    for i in range(data.draw(st.integers(1, 30))):
        if data.draw(st.booleans()):
            op, (a, shape) = data.draw(st.sampled_from(UNARY)), data.draw(st.sampled_from(values))
            nodes.append(node(op, a, f"v{i}"))
        else:
            op = data.draw(st.sampled_from(BINARY))
            (a, one), (b, two) = data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))
            nodes.append(node(op, f"{a} {b}", f"t{i}"))
            nodes.append(node("Tanh", f"t{i}", f"v{i}"))
            shape = np.broadcast_shapes(one, two)
        values.append((f"v{i}", shape))
    made = [name for name, _ in values if name.startswith("v")]
    outputs = sorted({made[-1], *data.draw(st.lists(st.sampled_from(made), max_size=2))})
    model = net(nodes, {f"x{i}": shape for i, shape in enumerate(shapes)}, outputs, constants)
    agrees(model, tolerance=1e-4)
    assert set(ops(model)) <= {"Pointwise", "reshape", "expand"}
