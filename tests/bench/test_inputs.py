"""Random inputs suit their model."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from zoi import InputError, TensorSpec
from zoi.bench.inputs import model_inputs, pool_size, random_feeds


@pytest.fixture
def model(tmp_path):
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
        helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 8]),
        helper.make_tensor_value_info("sr", TensorProto.INT64, []),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", inputs, [y])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_open_shapes_come_from_the_caller_and_fixed_inputs_are_left_out(model):
    specs = model_inputs(model, {"x": (3, 4)}, {"sr": 16000})
    assert specs == (TensorSpec("x", "float32", (3, 4)), TensorSpec("ids", "int64", (1, 8)))


def test_an_open_shape_that_is_not_given_is_named(model):
    with pytest.raises(InputError, match=r"'x': shape \['n', 4\] is open"):
        model_inputs(model, {}, {})


def test_a_name_that_is_no_input_is_refused(model):
    with pytest.raises(InputError, match="no input named"):
        model_inputs(model, {"z": (1,)}, {})


def test_integers_are_small_masks_are_ones_and_ranges_overrule():
    specs = [TensorSpec("ids", "int64", (1000,)), TensorSpec("attention_mask", "int64", (5,))]
    specs += [TensorSpec("flags", "bool", (5,)), TensorSpec("x", "float32", (1000,))]
    feeds = random_feeds(specs, np.random.default_rng(0), {"x": (2.0, 3.0)})
    assert set(feeds["ids"]) == set(range(10))
    assert (feeds["attention_mask"] == 1).all()
    assert feeds["flags"].all()
    assert feeds["x"].min() >= 2
    assert feeds["x"].max() <= 3
    assert {name: a.dtype.name for name, a in feeds.items()} == {s.name: s.dtype for s in specs}
    given = random_feeds(specs, np.random.default_rng(0), {"ids": (5.0, 6.0)})
    assert set(given["ids"]) == {5, 6}


def test_large_inputs_make_a_small_pool():
    assert pool_size([TensorSpec("x", "float32", (64,))]) == 16
    assert pool_size([TensorSpec("x", "float32", (1 << 24,))]) == 2
