"""Forms of operators that only some opsets have agree with ONNX Runtime; ONNX's own tests know the newest."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node

X = {"x": (1, 3, 6, 8)}
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*numbers):
    return np.array(numbers, np.int64)


def upsample(scales, mode="nearest"):
    return [node("Upsample", "x s", "y", mode=mode)], {"s": np.array(scales, np.float32)}


def resize(scales, mode="nearest"):
    return [node("Resize", "x s", "y", mode=mode)], {"s": np.array(scales, np.float32)}


# First opset, last opset, nodes and constants.
FORMS = {
    "Slice, attributes": (7, 9, [node("Slice", "x", "y", starts=[1, -5], ends=[5, 100], axes=[2, 3])], {}),
    "Slice, inputs": (
        10, 21, [node("Slice", "x s e a t", "y")],
        {"s": ints(-1, 1), "e": ints(-100, 8), "a": ints(2, -1), "t": ints(-2, 3)},
    ),
    "Pad, attributes": (7, 10, [node("Pad", "x", "y", pads=[0, 0, 1, 2, 0, 0, 2, 1], value=0.5)], {}),
    "Pad, inputs": (11, 21, [node("Pad", "x p v", "y")], {"p": ints(0, 0, 1, 2, 0, 0, 2, 1), "v": np.float32(0.5)}),
    "Clip, attributes": (7, 10, [node("Clip", "x", "y", min=-0.5, max=0.7)], {}),
    "Clip, one bound": (7, 10, [node("Clip", "x", "y", min=0.0)], {}),
    "Clip, inputs": (11, 21, [node("Clip", "x a b", "y")], {"a": np.float32(-0.5), "b": np.float32(0.7)}),
    "Squeeze, attributes": (
        7, 12, [node("Squeeze", "x", "a", axes=[0]), node("Unsqueeze", "a", "y", axes=[0, 4])], {},
    ),
    "Squeeze, inputs": (
        13, 21, [node("Squeeze", "x s", "a"), node("Unsqueeze", "a u", "y")], {"s": ints(0), "u": ints(0, 4)},
    ),
    "Split, attributes": (
        7, 12, [node("Split", "x", "a b", axis=3, split=[3, 5]), node("Concat", "b a", "y", axis=3)], {},
    ),
    "Split, inputs": (
        13, 21, [node("Split", "x s", "a b", axis=3), node("Concat", "b a", "y", axis=3)], {"s": ints(3, 5)},
    ),
    "Split, a count": (
        18, 21, [node("Split", "x", "a b c", axis=3, num_outputs=3), node("Concat", "c a b", "y", axis=3)], {},
    ),
    "Softmax": (7, 21, [node("Softmax", "x", "y")], {}),
    "LogSoftmax, an axis": (7, 12, [node("LogSoftmax", "x", "y", axis=2)], {}),
    "ReduceMean, attributes": (7, 17, [node("ReduceMean", "x", "y", axes=[1, 3])], {}),
    "ReduceMean, inputs": (18, 21, [node("ReduceMean", "x a", "y")], {"a": ints(-1, 1)}),
    "Upsample, attributes": (7, 8, [node("Upsample", "x", "y", scales=[1.0, 1.0, 2.0, 3.0])], {}),
    "Upsample, inputs": (9, 9, *upsample([1, 1, 2, 3])),
    "Upsample, linear": (9, 9, *upsample([1, 1, 2, 2], "linear")),
    "Resize, larger": (10, 10, *resize([1, 1, 2, 3])),
    "Resize, smaller": (10, 10, *resize([1, 1, 0.5, 0.75])),
    "Resize, larger and smaller": (10, 10, *resize([1, 1, 1.5, 0.75])),
    "Resize, linear": (10, 10, *resize([1, 1, 1.5, 0.75], "linear")),
    "Dropout": (7, 21, [node("Dropout", "x", "y")], {}),
    "BatchNormalization": (
        7, 21, [node("BatchNormalization", "x s b m v", "y")],
        {"s": floats(3), "b": floats(3), "m": floats(3), "v": np.abs(floats(3))},
    ),
    "AveragePool": (
        7, 21, [node("AveragePool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")], {},
    ),
}  # fmt: skip


def cases():
    for name, (first, last, nodes, constants) in FORMS.items():
        for opset in sorted({first, (first + last) // 2, last}):
            yield pytest.param(nodes, constants, opset, id=f"{name}-{opset}")


@pytest.mark.parametrize(("nodes", "constants", "opset"), list(cases()))
def test_agrees(nodes, constants, opset):
    agrees(net(nodes, X, ["y"], constants, opset=opset))


@pytest.mark.parametrize("opset", [10, 12, 19])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("pads", [{"pads": [1, 1, 1, 1]}, {"auto_pad": "VALID"}])
def test_rounding_up_makes_no_window_behind_the_image(op, pads, opset):
    if op == "AveragePool" and opset < 11:
        pytest.skip("ONNX Runtime has ceil_mode of AveragePool from opset 11 on")
    window = node(op, "x", "y", kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1, **pads)
    agrees(net([window], {"x": (1, 2, 7, 9)}, ["y"], opset=opset))


@pytest.mark.parametrize("scale", [0.7, 0.9, 1.3])
def test_sizes_are_rounded_as_in_float32(scale):
    """40 x 0.7 is 28, though 0.7 in float32 is less."""
    from zoi.graph.edit import shape_of
    from zoi.passes import simplify

    constants = {"s": np.array([1, 1, 1, scale], np.float32)}
    model = net([node("Resize", "x - s", "y", mode="linear")], {"x": (1, 1, 1, 40)}, ["y"], constants)
    assert shape_of(simplify(model).graph.outputs[0])[-1] == round(40 * scale)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"])
def test_a_reduction_over_no_axes(op):
    model = net([node(op, "x a", "y", noop_with_empty_axes=1)], {"x": (2, 3)}, ["y"], {"a": ints()}, opset=18)
    low = 0.1 if op == "ReduceLogSum" else -2.0
    agrees(model, feeds={"x": np.linspace(low, 2, 6, dtype=np.float32).reshape(2, 3)})
