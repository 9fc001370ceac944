"""Broken and hostile models are refused with an error that names the place."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from tests.passes.nets import agrees, net, node
from zoi.errors import ModelError
from zoi.graph.load import load

RELU = [node("Relu", "x", "y")]


def simple(nodes=RELU, outputs=("y",)):
    return net(nodes, {"x": (2, 3)}, list(outputs))


def test_every_kind_of_source(tmp_path):
    model = simple()
    path = tmp_path / "small.onnx"
    onnx.save(model, path)
    for source in (path, str(path), path.read_bytes(), model, ir.from_proto(model)):
        assert load(source).graph.num_nodes() == 1
    assert load(path).graph.name == "small"
    assert load(model).graph.name == "net"
    assert load(path, name="given").graph.name == "given"


def test_what_was_given_stays_as_it_is():
    model = simple()
    before = model.SerializeToString()
    loaded = ir.from_proto(model)
    load(model), load(loaded)
    assert model.SerializeToString() == before and loaded.graph.name == "net"


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256)), simple().SerializeToString()[:40]])
def test_bytes_that_are_no_model(content):
    with pytest.raises(ModelError, match=r"model"):
        load(content)


def test_a_missing_file():
    with pytest.raises(ModelError, match=r"nowhere\.onnx.*No such file"):
        load("nowhere.onnx")


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        ([node("Add", "x z", "y", name="sum")], ["y"], "'sum': it reads 'z'"),
        ([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], ["y"], "circle"),
        ([node("Relu", "x", "y"), node("Sin", "x", "y")], ["y"], "'y' is defined twice"),
        ([node("Relu", "x", "x")], ["x"], "'x' is defined twice"),
        (RELU, ["y", "q"], "'q' is computed by nothing"),
    ],
    ids=["dangling input", "cycle", "defined twice", "an input again", "dangling output"],
)
def test_graphs_that_hang_together_wrongly(nodes, outputs, message):
    with pytest.raises(ModelError, match=message):
        load(simple(nodes, outputs))


@pytest.mark.parametrize("opset", [0, 10**6])
def test_unknown_opsets(opset):
    model = simple()
    model.opset_import[0].version = opset
    with pytest.raises(ModelError, match=f"opset {opset}"):
        load(model)


def test_early_opsets_are_converted():
    nodes = [helper.make_node("Add", ["x", "c"], ["y"], broadcast=1)]
    model = net(nodes, {"x": (2, 3)}, ["y"], {"c": np.ones(3, np.float32)}, opset=6)
    loaded = load(model)
    assert loaded.graph.opset_imports[""] == 13 and "broadcast" not in next(iter(loaded.graph)).attributes


def test_functions_are_inlined():
    function = helper.make_function(
        "own", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 17)], []
    )
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain="own"), node("Relu", "t", "y")]
    agrees(net(nodes, {"x": (2, 3)}, ["y"], functions=[function], domains=["own"]), {"Pointwise": 1})


def external(folder, location, length=None):
    """A model whose one weight lies in another file."""
    weight = numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    model = net([node("Add", "x w", "y")], {"x": (2, 3)}, ["y"])
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    entries = {"location": location, "offset": "0", "length": str(length or 24)}
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    model.graph.initializer.append(weight)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_beside_the_model(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    model = load(external(tmp_path, "w.bin"))
    assert model.graph.initializers["w"].const_value.numpy().sum() == 15


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "a/../../w.bin", "link.bin"])
def test_external_data_elsewhere(tmp_path, location):
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(64))
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(ModelError, match=r"'w'.*outside"):
        load(external(folder, location))


def test_external_data_that_is_missing_or_short(tmp_path):
    with pytest.raises(ModelError, match=r"no such file"):
        load(external(tmp_path, "w.bin"))
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(ModelError, match=r"only 8 bytes"):
        load(external(tmp_path, "w.bin"))
    with pytest.raises(ModelError, match=r"no folder"):
        load(external(tmp_path, "w.bin").read_bytes())
