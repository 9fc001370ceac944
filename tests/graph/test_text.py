"""A graph prints as a person reads it."""

import re
from pathlib import Path

import numpy as np

from tests.passes.nets import net, node
from zoi.graph.ops import Op
from zoi.graph.text import ARITY, text
from zoi.passes import simplify

ARITY_HEADER = Path(__file__).resolve().parents[2] / "src/zoi/kernels/pointwise/arity.h"


def test_a_node_is_a_line_with_its_activation():
    w, b = np.ones((4, 3, 1, 1), np.float32), np.ones(4, np.float32)
    nodes = [node("Conv", "x w b", "c"), node("Clip", "c low high", "y")]
    constants = {"w": w, "b": b, "low": np.float32(0), "high": np.float32(6)}
    lines = text(simplify(net(nodes, {"x": (1, 3, 5, 5)}, ["y"], constants))).splitlines()
    assert lines[:3] == ["model net", "input  x f32[1,3,5,5]", "output y f32[1,4,5,5]"]
    assert len(lines) == 4
    assert re.match(r"  y f32\[1,4,5,5\] = zoi.Conv\(x, w f32\[4,3,1,1\], \[1.0, 1.0, 1.0, 1.0\]\)", lines[3])
    assert lines[3].endswith("clip[6.0]")


def test_a_chain_is_spelled_out():
    nodes = [node("Add", "x z", "a"), node("Mul", "a k", "m"), node("Where", "p m x", "y")]
    inputs = {"x": (2, 3), "z": (3,), "p": ((2, 3), "bool")}
    line = text(simplify(net(nodes, inputs, ["y"], {"k": np.float32(0.5)}))).splitlines()[-1]
    assert "f32  add(x1, x2)  mul(#0, 0.5)  where(x0, #1, x1)" in line


def test_a_reduction_by_name():
    model = net([node("ReduceL2", "x", "y", axes=[1])], {"x": (2, 3)}, ["y"])
    assert "  l2  axes=[1]  keepdims=1" in text(simplify(model))


def test_instructions_have_as_many_operands_as_in_cpp():
    found, waiting = {}, []
    for line in ARITY_HEADER.read_text().splitlines():
        case, result = re.search(r"case kPw(\w+):", line), re.search(r"return (\d);", line)
        if case:
            waiting.append(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", case.group(1)).upper())
        elif result:
            found |= {Op[name]: int(result.group(1)) for name in waiting}
            waiting = []
    assert found == ARITY
