"""The drop-in behaves as ONNX Runtime does."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from zoi import ort

RNG = np.random.default_rng(0)


def save(tmp_path, nodes, inputs, outputs, weights=(), name="m"):
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(array, key) for key, array in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, tmp_path / f"{name}.onnx")
    return str(tmp_path / f"{name}.onnx")


@pytest.fixture
def dynamic(tmp_path):
    """y = softmax(x w), z = relu(x) with an open batch."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["y"]),
        helper.make_node("Relu", ["x"], ["z"]),
    ]
    w = RNG.standard_normal((8, 5)).astype(np.float32)
    outputs = [("y", TensorProto.FLOAT, ["batch", 5]), ("z", TensorProto.FLOAT, ["batch", 8])]
    return save(tmp_path, nodes, [("x", TensorProto.FLOAT, ["batch", 8])], outputs, [("w", w)])


def both(path):
    return ort.InferenceSession(path), onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def args(nodes):
    return [(n.name, n.type, n.shape) for n in nodes]


def test_inputs_and_outputs_are_described_alike(dynamic):
    ours, theirs = both(dynamic)
    assert args(ours.get_inputs()) == args(theirs.get_inputs())
    assert args(ours.get_outputs()) == args(theirs.get_outputs())
    assert ours.get_providers() == theirs.get_providers()


@pytest.mark.parametrize("names", [None, [], ["z"], ["z", "y"]])
def test_outputs_come_in_the_order_asked_for(dynamic, names):
    ours, theirs = both(dynamic)
    x = RNG.standard_normal((3, 8)).astype(np.float32)
    for a, b in zip(ours.run(names, {"x": x}), theirs.run(names, {"x": x}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_each_shape_is_compiled_once(dynamic, monkeypatch):
    session, compiled = ort.InferenceSession(dynamic), []
    original = ort.zoi.compile
    monkeypatch.setattr(ort.zoi, "compile", lambda *a, **k: compiled.append(k["shapes"]) or original(*a, **k))
    for batch in (1, 4, 1, 4, 2):
        session.run(None, {"x": np.ones((batch, 8), np.float32)})
    assert [shapes["x"] for shapes in compiled] == [(1, 8), (4, 8), (2, 8)]


def test_plans_that_were_not_used_for_long_are_dropped(dynamic, monkeypatch):
    monkeypatch.setattr(ort, "MAX_PLANS", 2)
    session = ort.InferenceSession(dynamic)
    for batch in (1, 2, 1, 3):
        session.run(None, {"x": np.ones((batch, 8), np.float32)})
    assert [key for key in session._sessions] == [((1, 8),), ((3, 8),)]


def test_results_are_copies(dynamic):
    session = ort.InferenceSession(dynamic)
    first = session.run(["z"], {"x": np.ones((1, 8), np.float32)})[0]
    session.run(["z"], {"x": np.zeros((1, 8), np.float32)})
    assert (first == 1).all()


def test_bytes_and_options_are_accepted(dynamic):
    with open(dynamic, "rb") as file:
        session = ort.InferenceSession(file.read(), ort.SessionOptions(), providers=["CPUExecutionProvider"])
    assert session.run(["z"], {"x": np.ones((1, 8), np.float32)})[0].shape == (1, 8)


@pytest.mark.parametrize(
    ("feeds", "names"),
    [
        ({"x": np.ones((1, 8), np.float32), "q": np.ones(1, np.float32)}, None),
        ({"x": np.ones((1, 8), np.float64)}, None),
        ({"x": np.ones((1, 9), np.float32)}, None),
        ({"x": np.ones(8, np.float32)}, None),
        ({"x": np.ones((1, 8), np.float32)}, ["q"]),
        ({}, None),
    ],
)
def test_what_onnxruntime_refuses_is_refused(dynamic, feeds, names):
    ours, theirs = both(dynamic)
    with pytest.raises(Exception) as expected:
        theirs.run(names, feeds)
    with pytest.raises(ValueError) as caught:
        ours.run(names, feeds)
    kind = "Required inputs" if not feeds else "nvalid|Unexpected"
    assert caught.match(kind)
    assert expected.match(kind)


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ort.InferenceSession("nowhere.onnx")


def test_a_scalar_that_steers_control_flow_is_compiled_in(tmp_path):
    """y = x + 1 where rate is 8, else x + 2: as the speech models choose by sampling rate."""

    def branch(name, constant):
        nodes = [helper.make_node("Add", ["x", f"c_{name}"], [f"y_{name}"])]
        info = helper.make_tensor_value_info(f"y_{name}", TensorProto.FLOAT, [2])
        return helper.make_graph(nodes, name, [], [info], [numpy_helper.from_array(constant, f"c_{name}")])

    nodes = [
        helper.make_node("Equal", ["rate", "eight"], ["is_eight"]),
        helper.make_node(
            "If",
            ["is_eight"],
            ["y"],
            then_branch=branch("a", np.float32([1, 1])),
            else_branch=branch("b", np.float32([2, 2])),
        ),
    ]
    inputs = [("x", TensorProto.FLOAT, [2]), ("rate", TensorProto.INT64, [])]
    path = save(tmp_path, nodes, inputs, [("y", TensorProto.FLOAT, [2])], [("eight", np.array(8, np.int64))])
    session = ort.InferenceSession(path)
    x = np.zeros(2, np.float32)
    for rate, expected in ((8, 1), (16, 2), (8, 1)):
        assert session.run(None, {"x": x, "rate": np.array(rate, np.int64)})[0][0] == expected
