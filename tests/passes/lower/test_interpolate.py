"""The tables of Resize give what the ONNX reference implementation gives, in every mode."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from zoi.passes.lower.interpolate import Rules, table

COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
CASES = [("nearest", c, n) for c, n in itertools.product(COORDINATES, NEAREST)]
CASES += [(m, c, "floor") for m, c in itertools.product(["linear", "cubic"], COORDINATES)]


@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("size,out", [(5, 10), (10, 5), (7, 3), (4, 1), (1, 6), (8, 13)])
@pytest.mark.parametrize("mode,coordinates,nearest", CASES)
def test_table_matches_reference(mode: str, coordinates: str, nearest: str, size: int, out: int, exclude: int) -> None:
    if exclude and mode != "cubic":
        pytest.skip("exclude_outside is defined for cubic")
    if (mode, coordinates, out) == ("cubic", "pytorch_half_pixel", 1):
        pytest.skip("the reference takes coordinate -0.5 where the specification says 0")
    attributes = dict(mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=nearest)
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], exclude_outside=exclude, **attributes)
    f32, i64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    inputs = [helper.make_tensor_value_info("x", f32, [size]), helper.make_tensor_value_info("sizes", i64, [1])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", f32, [out])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    x = np.random.default_rng(0).normal(size=size).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x, "sizes": np.array([out])})

    rules = Rules(mode, coordinates, nearest, -0.75, bool(exclude), {})
    index, weight = table(rules, size, out, None)
    np.testing.assert_allclose((x[index] * weight).sum(1), expected, rtol=1e-5, atol=1e-5)
