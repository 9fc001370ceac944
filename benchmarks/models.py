"""Writes eleven reference architectures as ONNX files with random weights.

MLPerf Tiny's four, MobileNetV2, ResNet-18, two BERT-style encoders, a keyword spotter with a GRU, and two small MLPs.
The weights are drawn, scaled so that activations keep their size, and never trained: use these for latency, memory and
agreement with other engines, not for accuracy.

    python benchmarks/models.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 9
F32, I64 = TensorProto.FLOAT, TensorProto.INT64
Array = npt.NDArray[Any]


class Builder:
    """Appends operators to a graph; every method returns the name of its result."""

    def __init__(self, name: str, inputs: Sequence[tuple[str, int, Sequence[int]]]) -> None:
        self.name = name
        self.random = np.random.default_rng(0)
        self._inputs = [helper.make_tensor_value_info(*one) for one in inputs]
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """A constant tensor."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def normal(self, *shape: int, deviation: float = 0.05, mean: float = 0.0) -> str:
        """A normally distributed constant."""
        return self.constant(self.random.normal(mean, deviation, shape))

    def uniform(self, *shape: int, low: float = 0.8, high: float = 1.2) -> str:
        """A uniformly distributed constant."""
        return self.constant(self.random.uniform(low, high, shape))

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """An operator of one result."""
        return self.nodes(op, 1, *inputs, **attributes)[0]

    def nodes(self, op: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """An operator of several results."""
        names = [f"{op.lower()}_{len(self._nodes)}" + (f"_{i}" if i else "") for i in range(results)]
        self._nodes.append(helper.make_node(op, inputs, names, name=names[0], **attributes))
        return names

    def activation(self, x: str, kind: str | None) -> str:
        """An operator by name, "relu6", or "gelu" as exporters spell it; None leaves x as it is."""
        if kind == "relu6":
            return self.node("Clip", x, self.constant(0), self.constant(6))
        if kind == "gelu":
            erf = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
            return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.constant(1))), self.constant(0.5))
        return x if kind is None else self.node(kind, x)

    def dense(self, x: str, inputs: int, outputs: int, kind: str | None = None) -> str:
        """A fully connected layer over [batch, inputs]."""
        gain = 2.0 if kind == "Relu" else 1.0
        w = self.normal(outputs, inputs, deviation=np.sqrt(gain / inputs))
        return self.activation(self.node("Gemm", x, w, self.normal(outputs), transB=1), kind)

    def project(self, x: str, inputs: int, outputs: int, kind: str | None = None) -> str:
        """A fully connected layer over the last of any number of dimensions."""
        w = self.normal(inputs, outputs, deviation=np.sqrt((2.0 if kind else 1.0) / inputs))
        return self.activation(self.node("Add", self.node("MatMul", x, w), self.normal(outputs)), kind)

    def conv(
        self,
        x: str,
        inputs: int,
        outputs: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        groups: int = 1,
        pads: Sequence[int] | None = None,
        kind: str | None = None,
        norm: bool = True,
    ) -> str:
        """A convolution, batch normalisation (or a bias), and an activation."""
        h, w = (kernel, kernel) if isinstance(kernel, int) else kernel
        fan_in = inputs // groups * h * w
        operands = [x, self.normal(outputs, inputs // groups, h, w, deviation=np.sqrt(2 / fan_in))]
        if not norm:
            operands.append(self.normal(outputs))
        pads = [h // 2, w // 2, h // 2, w // 2] if pads is None else list(pads)
        y = self.node("Conv", *operands, kernel_shape=[h, w], strides=[stride, stride], pads=pads, group=groups)
        if norm:
            scale, shift = self.uniform(outputs), self.normal(outputs)
            mean, variance = self.normal(outputs, deviation=0.1), self.uniform(outputs)
            y = self.node("BatchNormalization", y, scale, shift, mean, variance)
        return self.activation(y, kind)

    def classify(self, x: str, channels: int, classes: int, softmax: bool = True) -> str:
        """Global average pooling and a classifier."""
        y = self.dense(self.node("Flatten", self.node("GlobalAveragePool", x)), channels, classes)
        return self.node("Softmax", y) if softmax else y

    def model(self, *outputs: tuple[str, Sequence[int]]) -> onnx.ModelProto:
        """The finished, checked model."""
        results = [helper.make_tensor_value_info(name, F32, shape) for name, shape in outputs]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, results, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return model


def policy_mlp() -> onnx.ModelProto:
    """A control policy: 64 observations to 8 actions."""
    b = Builder("policy_mlp", [("obs", F32, (1, 64))])
    x = b.dense(b.dense("obs", 64, 64, "Tanh"), 64, 64, "Tanh")
    return b.model((b.dense(x, 64, 8), (1, 8)))


def tabular_mlp() -> onnx.ModelProto:
    """A scorer of table rows: 32 columns to one probability."""
    b = Builder("tabular_mlp", [("x", F32, (1, 32))])
    x = "x"
    for inputs, outputs in ((32, 128), (128, 128), (128, 64)):
        x = b.dense(x, inputs, outputs, "Relu")
    return b.model((b.node("Sigmoid", b.dense(x, 64, 1)), (1, 1)))


def tiny_ad_autoencoder() -> onnx.ModelProto:
    """MLPerf Tiny's anomaly detector: ten layers with a bottleneck of 8."""
    b = Builder("tiny_ad_autoencoder", [("x", F32, (1, 640))])
    x, inputs = "x", 640
    for outputs in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x, inputs = b.dense(x, inputs, outputs, "Relu"), outputs
    return b.model((b.dense(x, inputs, 640), (1, 640)))


def tiny_kws_dscnn() -> onnx.ModelProto:
    """MLPerf Tiny's keyword spotter: depthwise separable convolutions over 49 frames of 10 coefficients."""
    b = Builder("tiny_kws_dscnn", [("x", F32, (1, 1, 49, 10))])
    x = b.conv("x", 1, 64, (10, 4), 2, pads=(4, 1, 5, 1), kind="Relu")
    for _ in range(4):
        x = b.conv(b.conv(x, 64, 64, 3, groups=64, kind="Relu"), 64, 64, 1, kind="Relu")
    return b.model((b.classify(x, 64, 12), (1, 12)))


def tiny_ic_resnet8() -> onnx.ModelProto:
    """MLPerf Tiny's image classifier: a ResNet of eight layers for 32 x 32 images."""
    b = Builder("tiny_ic_resnet8", [("x", F32, (1, 3, 32, 32))])
    x, c = b.conv("x", 3, 16, 3, kind="Relu"), 16
    for outputs, stride in ((16, 1), (32, 2), (64, 2)):
        y = b.conv(b.conv(x, c, outputs, 3, stride, kind="Relu"), outputs, outputs, 3)
        skip = x if stride == 1 else b.conv(x, c, outputs, 1, stride, norm=False)
        x, c = b.node("Relu", b.node("Add", y, skip)), outputs
    return b.model((b.classify(x, 64, 10), (1, 10)))


def tiny_vww_mobilenet() -> onnx.ModelProto:
    """MLPerf Tiny's person detector: MobileNetV1 at a quarter of its width, 96 x 96."""
    b = Builder("tiny_vww_mobilenet", [("x", F32, (1, 3, 96, 96))])
    x, c = b.conv("x", 3, 8, 3, 2, kind="Relu"), 8
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
    for outputs, stride in blocks:
        x = b.conv(b.conv(x, c, c, 3, stride, groups=c, kind="Relu"), c, outputs, 1, kind="Relu")
        c = outputs
    return b.model((b.classify(x, 256, 2), (1, 2)))


# (expansion, channels, repeats, stride of the first) of each stage.
MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenetv2_224() -> onnx.ModelProto:
    """MobileNetV2 for 224 x 224 images."""
    b = Builder("mobilenetv2_224", [("x", F32, (1, 3, 224, 224))])
    x, c = b.conv("x", 3, 32, 3, 2, kind="relu6"), 32
    for expansion, outputs, repeats, first in MOBILENET_V2:
        for stride in (first, *[1] * (repeats - 1)):
            wide = c * expansion
            y = x if expansion == 1 else b.conv(x, c, wide, 1, kind="relu6")
            y = b.conv(y, wide, wide, 3, stride, groups=wide, kind="relu6")
            y = b.conv(y, wide, outputs, 1)
            x, c = (b.node("Add", x, y) if stride == 1 and c == outputs else y), outputs
    return b.model((b.classify(b.conv(x, 320, 1280, 1, kind="relu6"), 1280, 1000, softmax=False), (1, 1000)))


def resnet18_224() -> onnx.ModelProto:
    """ResNet-18 for 224 x 224 images."""
    b = Builder("resnet18_224", [("x", F32, (1, 3, 224, 224))])
    x, c = b.conv("x", 3, 64, 7, 2, kind="Relu"), 64
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            y = b.conv(b.conv(x, c, outputs, 3, stride, kind="Relu"), outputs, outputs, 3)
            skip = x if stride == 1 else b.conv(x, c, outputs, 1, stride)
            x, c = b.node("Relu", b.node("Add", y, skip)), outputs
    return b.model((b.classify(x, 512, 1000, softmax=False), (1, 1000)))


def encoder(name: str, layers: int, hidden: int, heads: int, inner: int, tokens: int, words: int) -> onnx.ModelProto:
    """A BERT-style encoder of token ids and their mask."""
    b = Builder(name, [("input_ids", I64, (1, tokens)), ("attention_mask", I64, (1, tokens))])

    def norm(x: str) -> str:
        return b.node("LayerNormalization", x, b.uniform(hidden), b.normal(hidden), axis=-1, epsilon=1e-12)

    def heads_of(x: str, perm: Sequence[int]) -> str:
        return b.node("Transpose", b.node("Reshape", b.project(x, hidden, hidden), apart), perm=perm)

    apart = b.constant((1, tokens, heads, hidden // heads), np.int64)
    together = b.constant((1, tokens, hidden), np.int64)
    x = norm(b.node("Add", b.node("Gather", b.normal(words, hidden), "input_ids"), b.normal(1, tokens, hidden)))
    seen = b.node("Cast", b.node("Unsqueeze", "attention_mask", b.constant((1, 2), np.int64)), to=F32)
    mask = b.node("Mul", b.node("Sub", b.constant(1), seen), b.constant(-1e9))
    for _ in range(layers):
        q, k, v = heads_of(x, (0, 2, 1, 3)), heads_of(x, (0, 2, 3, 1)), heads_of(x, (0, 2, 1, 3))
        scores = b.node("Div", b.node("MatMul", q, k), b.constant(np.sqrt(hidden // heads)))
        mixed = b.node("MatMul", b.node("Softmax", b.node("Add", scores, mask), axis=-1), v)
        mixed = b.node("Reshape", b.node("Transpose", mixed, perm=(0, 2, 1, 3)), together)
        x = norm(b.node("Add", x, b.project(mixed, hidden, hidden)))
        x = norm(b.node("Add", x, b.project(b.project(x, hidden, inner, "gelu"), inner, hidden)))
    return b.model((x, (1, tokens, hidden)))


def bert_tiny_s32() -> onnx.ModelProto:
    """Two layers of width 128 over 32 tokens."""
    return encoder("bert_tiny_s32", layers=2, hidden=128, heads=2, inner=512, tokens=32, words=4096)


def minilm_l6_s128() -> onnx.ModelProto:
    """Six layers of width 384 over 128 tokens."""
    return encoder("minilm_l6_s128", layers=6, hidden=384, heads=12, inner=1536, tokens=128, words=30522)


def gru_kws() -> onnx.ModelProto:
    """A keyword spotter: a GRU of 128 over 49 frames, its state an input and an output."""
    b = Builder("gru_kws", [("x", F32, (49, 1, 40)), ("h0", F32, (1, 1, 128))])
    w, r, bias = (b.uniform(*shape, low=-0.09, high=0.09) for shape in ((1, 384, 40), (1, 384, 128), (1, 768)))
    _, h = b.nodes("GRU", 2, "x", w, r, bias, "", "h0", hidden_size=128, linear_before_reset=1)
    y = b.dense(b.node("Squeeze", h, b.constant((0,), np.int64)), 128, 12)
    return b.model((b.node("Softmax", y), (1, 12)), (h, (1, 1, 128)))


MODELS: tuple[Callable[[], onnx.ModelProto], ...] = (
    policy_mlp,
    tabular_mlp,
    tiny_ad_autoencoder,
    tiny_kws_dscnn,
    tiny_ic_resnet8,
    tiny_vww_mobilenet,
    mobilenetv2_224,
    resnet18_224,
    minilm_l6_s128,
    bert_tiny_s32,
    gru_kws,
)


def write_all(folder: Path, models: Iterable[Callable[[], onnx.ModelProto]] = MODELS) -> None:
    """Writes the models as FOLDER/<name>.onnx; a file appears only when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for build in models:
        model = build()
        part = folder / f"{model.graph.name}.onnx.part"
        onnx.save(model, part)
        part.replace(folder / f"{model.graph.name}.onnx")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "build" / "models")
