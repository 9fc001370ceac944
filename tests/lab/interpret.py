"""Runs one Triton kernel under Triton's interpreter, which is chosen when it is imported, and judges it."""

import os
import sys

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, os.path.dirname(__file__))

import numpy as np
import torch
from test_triton import INTERPRETED

from zoi.kernels.registry import Machine
from zoi.lab.ahead import arguments
from zoi.lab.check import judge
from zoi.lab.definition import DEFINITIONS
from zoi.lab.solutions import solution

TYPES = {"f16": torch.float16, "f32": torch.float32}


class View:
    """A tensor with the strides that arguments are found by."""

    def __init__(self, tensor):
        self.tensor, self.strides = tensor, tensor.stride()


s, w = solution(sys.argv[1]), INTERPRETED[sys.argv[1]]
rng = np.random.default_rng(3)
config = min(s.configs(w, Machine(90)), key=lambda c: c.get("BM", 1) * c.get("BN", 1))
tensors = DEFINITIONS[w.definition].tensors(w)
views = {t.name: View(torch.empty(t.shape, dtype=TYPES[t.dtype])) for t in tensors}
for t in tensors:
    if not t.output:
        views[t.name].tensor.copy_(torch.from_numpy(rng.standard_normal(t.shape) * t.spread))


def bits(name):
    return views[name].tensor.numpy().copy()


def run():
    for t in tensors:
        if t.output:
            views[t.name].tensor.fill_(float("nan"))
    values = arguments(s, w, config, views)
    s.function[s.grid(w, config, Machine(90))](**{k: getattr(v, "tensor", v) for k, v in values.items()})
    return {t.name: bits(t.name) for t in tensors if t.output}


verdict = judge(w, lambda: {t.name: bits(t.name) for t in tensors if not t.output}, run)
print(verdict)
sys.exit(not verdict.passed)
