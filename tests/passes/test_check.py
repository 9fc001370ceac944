"""What is not supported is refused with the model, the node, the operator and a way out."""

import numpy as np
import pytest
from onnx import helper

from tests.passes.nets import net, node
from zoi.errors import UnsupportedOperator
from zoi.passes import simplify

W = np.ones((4, 3, 3, 3, 3), np.float32)
CASES = {
    "no kernel": (
        net([node("TopK", "x k", "v y", axis=-1, name="n")], {"x": (2, 5)}, ["v"], {"k": np.array([2])}),
        "TopK",
    ),
    "volume": (net([node("Conv", "x w", "y", name="n")], {"x": (1, 3, 4, 4, 4)}, ["y"], {"w": W}), "rank 5.*rank 3"),
    "weights": (
        net([node("Conv", "x w", "y", name="n")], {"x": (1, 3, 4, 4), "w": (4, 3, 3, 3)}, ["y"]),
        "initializer",
    ),
    "type": (
        net(
            [node("MatMul", "x z", "y", name="n")],
            {"x": ((2, 3), "float64"), "z": ((3, 2), "float64")},
            {"y": "float64"},
        ),
        "DOUBLE.*float32",
    ),
    "training": (
        net(
            [node("Dropout", "x r t", "y", name="n")], {"x": (2, 3)}, ["y"], {"r": np.float32(0.5), "t": np.array(True)}
        ),
        "Dropout",
    ),
    "foreign": (
        net([helper.make_node("Magic", ["x"], ["y"], domain="of", name="n")], {"x": (2,)}, ["y"], domains=["of"]),
        "of.Magic",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_error_says_where_and_what(case):
    model, message = CASES[case]
    with pytest.raises(UnsupportedOperator, match=rf"model 'net', node 'n', operator .*{message}|{message}") as caught:
        simplify(model)
    assert "'net'" in str(caught.value) and "'n" in str(caught.value)
