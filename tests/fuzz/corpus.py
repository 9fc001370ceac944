"""Small models that between them use every family of kernels, as .zoi files: the seeds of the fuzzer."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import zoi
from tests.programs import mixed, mlp
from zoi import _native

Node = onnx.NodeProto


def _model(name, shapes, nodes, weights, outputs):
    rng = np.random.default_rng(0)
    constants = [
        numpy_helper.from_array(w if isinstance(w, np.ndarray) else rng.standard_normal(w).astype(np.float32) / 4, key)
        for key, w in weights.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(op, ins.split(" "), outs.split(" "), **attributes) for op, ins, outs, attributes in nodes],
        name,
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in shapes.items()],
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def models():
    """The models, by name."""
    same = {"pads": [1, 1, 1, 1]}
    yield _model(
        "image", {"x": [1, 3, 8, 8]},
        [("Conv", "x w1 b1", "c", same), ("Relu", "c", "r", {}), ("Conv", "r w2", "d", {"group": 8, **same}),
         ("MaxPool", "d", "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
         ("AveragePool", "p", "q", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
         ("Conv", "q w3", "e", {"strides": [2, 2], **same}),
         ("Resize", "e  scales", "y", {"mode": "linear"}), ("GlobalAveragePool", "e", "z", {})],
        {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "w3": (4, 8, 3, 3),
         "scales": np.array([1, 1, 2, 2], np.float32)},
        ["y", "z"],
    )  # fmt: skip
    yield _model(
        "tokens", {"x": [2, 5, 8]},
        [("MatMul", "x wq", "q", {}), ("MatMul", "x wk", "k", {}), ("Transpose", "k", "kt", {"perm": [0, 2, 1]}),
         ("MatMul", "q kt", "s", {}), ("Softmax", "s", "a", {"axis": -1}), ("MatMul", "a x", "c", {}),
         ("Add", "c x", "r", {}), ("LayerNormalization", "r g b", "n", {}), ("ReduceMax", "n", "m", {"axes": [1]}),
         ("Concat", "n x", "y", {"axis": 1}), ("Erf", "m", "z", {})],
        {"wq": (8, 8), "wk": (8, 8), "g": (8,), "b": (8,)},
        ["y", "z"],
    )  # fmt: skip
    yield _model(
        "pairs", {"a": [2, 4, 6], "b": [2, 6, 5]},
        [("MatMul", "a b", "m", {}), ("Softmax", "m", "s", {"axis": 1}), ("Pad", "s pads", "y", {"mode": "constant"})],
        {"pads": np.array([0, 1, 2, 0, 1, 0])}, ["y"],
    )  # fmt: skip
    for kind, gates in (("LSTM", 4), ("GRU", 3)):
        outputs = "y h c" if kind == "LSTM" else "y h"
        yield _model(
            kind.lower(), {"x": [3, 2, 4]}, [(kind, "x w r b", outputs, {"hidden_size": 5})],
            {"w": (1, gates * 5, 4), "r": (1, gates * 5, 5), "b": (1, gates * 10)}, outputs.split(),
        )  # fmt: skip


def write(folder: Path) -> list[Path]:
    """Writes the corpus into a folder."""
    plans = [zoi.compile(model).native for model in models()]
    plans += [_native.Plan(mlp((6, 10, 4), rows=3)), _native.Plan(mixed())]
    for plan in plans:
        plan.save(str(folder / f"{plan.name}.zoi"))
    return sorted(folder.glob("*.zoi"))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    print(*write(target))
