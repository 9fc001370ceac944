"""fold_tables: one-hot products become look-ups, and what follows on rows is done to the table."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import zoi
from zoi.passes import simplify


def one_hot_model(rows: int, width: int) -> onnx.ModelProto:
    """gelu-like chain of one_hot(i) w + b."""
    rng = np.random.default_rng(0)
    constants = {
        "range": np.arange(rows, dtype=np.int32).reshape(1, 1, rows),
        "w": rng.standard_normal((rows, width), dtype=np.float32),
        "b": rng.standard_normal((1, 1, width), dtype=np.float32),
        "half": np.float32(0.5),
        "shape": np.array([1, 6, 1], np.int64),
    }
    nodes = [
        helper.make_node("Reshape", ["i", "shape"], ["column"]),
        helper.make_node("Equal", ["column", "range"], ["equal"]),
        helper.make_node("Cast", ["equal"], ["hot"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["hot", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["biased"]),
        helper.make_node("Tanh", ["biased"], ["tanh"]),
        helper.make_node("Mul", ["tanh", "biased"], ["both"]),
        helper.make_node("Mul", ["half", "both"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "one_hot",
        [helper.make_tensor_value_info("i", TensorProto.INT32, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, width])],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_only_the_look_up_is_left() -> None:
    kinds = [n.op_type for n in simplify(one_hot_model(5, 7)).graph]
    assert "Gather" in kinds and "Gemm" not in kinds and "MatMul" not in kinds
    assert kinds[-1] == "Gather", "the chain after the look-up is part of the table"


def test_values_outside_the_range_select_nothing() -> None:
    model = one_hot_model(5, 7)
    i = np.array([[0, 4, 2, 5, -1, 1000]], np.int32)
    (expected,) = ReferenceEvaluator(model).run(None, {"i": i})
    found = zoi.Session(zoi.compile(model))(i=i)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_table_larger_than_its_use_stays_a_computation() -> None:
    model = one_hot_model(200, 7)
    kinds = [n.op_type for n in simplify(model).graph]
    assert "Gather" in kinds and kinds[-1] != "Gather"
    i = np.array([[0, 199, 3, 7, 200, 5]], np.int32)
    (expected,) = ReferenceEvaluator(model).run(None, {"i": i})
    np.testing.assert_allclose(zoi.Session(zoi.compile(model))(i=i)["y"], expected, rtol=1e-5, atol=1e-6)
