"""The models that are measured and tested: eleven written by `benchmarks/models.py`, the others from packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.signals import Array, page, voice
from zoi.bench.inputs import Feeds, random_feeds
from zoi.plan import TensorSpec

Shape = tuple[int, ...]
WRITTEN = Path(__file__).resolve().parent.parent / "build" / "models"


@dataclass(frozen=True)
class Case:
    """One model at one shape.

    Attributes:
        name: As the tables show it.
        source: "package:path" of a file that a package ships, or the stem of a written model.
        mmac: Millions of multiply-adds of one run.
        shapes: Input name -> shape, where the model leaves it open.
        other_shapes: More shapes that it must run at.
        fix: Input name -> value, the same in every run.
        ranges: Input name -> (lowest, highest) of random values.
        signals: Input name -> maker of inputs that the model answers to, where random ones say nothing to it.
        state: Output name -> input name that it feeds.
        peers: Who runs it, zoi aside.
    """

    name: str
    source: str
    mmac: float
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    other_shapes: tuple[Mapping[str, Shape], ...] = ()
    fix: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    signals: Mapping[str, Callable[[Shape, np.random.Generator], Array]] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    peers: tuple[str, ...] = ("ort", "openvino")

    @property
    def real(self) -> bool:
        """Whether the weights are trained ones, from a package."""
        return ":" in self.source

    def feeds(self, specs: Sequence[TensorSpec], rng: np.random.Generator) -> Feeds:
        """One set of fresh inputs."""
        made = {s.name: self.signals[s.name](s.shape, rng) for s in specs if s.name in self.signals}
        return {**random_feeds(specs, rng, self.ranges), **made}

    def path(self) -> Path:
        """The model's file.

        Raises:
            FileNotFoundError: The package is not installed; the message names it.
        """
        if not self.real:
            return written(self.source)
        package, _, inside = self.source.partition(":")
        spec = importlib.util.find_spec(package)
        folders = (spec.submodule_search_locations if spec else None) or []
        found = sorted(path for folder in folders for path in Path(folder).glob(inside))
        if not found:
            raise FileNotFoundError(f"{self.name}: no file {inside} of package {package}; `make dev` installs it.")
        return found[-1]


def written(stem: str) -> Path:
    """A written model's file; all are written when one is missing."""
    path = WRITTEN / f"{stem}.onnx"
    if not path.is_file():
        from benchmarks.models import write_all

        write_all(WRITTEN)
    return path


_SILERO: dict[str, Any] = {
    "shapes": {"input": (1, 576), "state": (2, 1, 128)},
    "fix": {"sr": 16000},
    "signals": {"input": voice},
    "state": {"stateN": "state"},
}
_TOKENS = {"input_ids": (0.0, 999.0)}

CASES: tuple[Case, ...] = (
    Case("policy_mlp", "policy_mlp", 0.009, peers=("ort", "ort-bound", "openvino")),
    Case("tabular_mlp", "tabular_mlp", 0.029, peers=("ort", "ort-bound", "openvino")),
    Case("tiny_ad_autoencoder", "tiny_ad_autoencoder", 0.264),
    Case("tiny_kws_dscnn", "tiny_kws_dscnn", 2.66),
    Case("gru_kws (49 steps)", "gru_kws", 3.16),
    Case("tiny_vww_mobilenet", "tiny_vww_mobilenet", 7.49),
    Case("tiny_ic_resnet8", "tiny_ic_resnet8", 12.5),
    Case("bert_tiny_s32", "bert_tiny_s32", 13.1, ranges=_TOKENS),
    Case("mobilenetv2_224", "mobilenetv2_224", 301),
    Case("minilm_l6_s128", "minilm_l6_s128", 1434, ranges=_TOKENS),
    Case("resnet18_224", "resnet18_224", 1814),
    Case("silero VAD 16k", "silero_vad:data/silero_vad.onnx", 0.68, peers=("ort",), **_SILERO),
    Case("silero VAD 16k, op15", "silero_vad:data/silero_vad_16k_op15.onnx", 0.68, **_SILERO),
    Case("silero VAD 16k, op18 ifless", "silero_vad:data/silero_vad_op18_ifless.onnx", 0.68, peers=("ort",), **_SILERO),
    Case(
        "silero VAD 16k, sequence of 10",
        "silero_vad:data/silero_vad_16k_sequence.onnx",
        6.8,
        shapes={"input": (10, 576)},
        signals={"input": voice},
        state={"hn": "h", "cn": "c"},
    ),
    Case(
        "magika",
        "magika:models/standard_*/model.onnx",
        367,
        shapes={"bytes": (1, 2048)},
        ranges={"bytes": (0.0, 256.0)},
    ),
    Case(
        "ppocr v2 cls 48x192",
        "rapidocr_onnxruntime:models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        16.3,
        shapes={"x": (1, 3, 48, 192)},
        other_shapes=({"x": (2, 3, 48, 192)}, {"x": (1, 3, 32, 100)}),
    ),
    Case(
        "ppocr v4 det 320x320",
        "rapidocr_onnxruntime:models/ch_PP-OCRv4_det_infer.onnx",
        576,
        shapes={"x": (1, 3, 320, 320)},
        signals={"x": page},
        other_shapes=({"x": (1, 3, 64, 96)}, {"x": (1, 3, 160, 224)}),
    ),
    Case(
        "ppocr v4 rec 48x320",
        "rapidocr_onnxruntime:models/ch_PP-OCRv4_rec_infer.onnx",
        702,
        shapes={"x": (1, 3, 48, 320)},
        other_shapes=({"x": (1, 3, 48, 96)}, {"x": (2, 3, 48, 160)}),
    ),
    Case(
        "basic_pitch",
        "basic_pitch:saved_models/icassp_2022/nmp.onnx",
        524,
        shapes={"serving_default_input_2:0": (1, 43844, 1)},
    ),
    Case(
        "name romanizer encoder (12 chars)",
        "arabic_name_romanizer:resources/encoder.onnx",
        7.1,
        shapes={"src": (1, 12), "src_mask": (1, 12)},
        other_shapes=({"src": (1, 5), "src_mask": (1, 5)},),
    ),
    Case(
        "name romanizer decoder (12 chars, step 4)",
        "arabic_name_romanizer:resources/decoder.onnx",
        0,
        shapes={"prefix": (1, 4), "memory": (1, 12, 256), "src_mask": (1, 12), "hidden": (1, 2, 256)},
        other_shapes=({"prefix": (1, 1), "memory": (1, 7, 256), "src_mask": (1, 7), "hidden": (1, 2, 256)},),
    ),
)
