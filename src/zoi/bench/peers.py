"""The contenders behind one face: arrays in, arrays out, one thread for each core given.

zoi and OpenVINO copy the input into memory of theirs and give views of the outputs. ONNX Runtime is called as most
code calls it (`ort`: new arrays from every run) and in its cheapest way (`ort-bound`: memory bound beforehand).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import zoi

Array = npt.NDArray[Any]
Call = Callable[[], Any]


class Peer(ABC):
    """One implementation with a model loaded."""

    name: str
    version: str

    @abstractmethod
    def bind(self, feeds: Mapping[str, Array]) -> Call:
        """A call that runs the model on these inputs, with all that can be prepared done beforehand."""

    @abstractmethod
    def outputs(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, in arrays of their own."""


class Zoi(Peer):
    """This library, through a session's views."""

    name = "zoi"

    def __init__(
        self,
        model: str,
        shapes: Mapping[str, Sequence[int]],
        fix: Mapping[str, Any],
        cores: Sequence[int],
        arch: str = "auto",
    ) -> None:
        self.version = zoi.__version__
        if model.endswith(".zoi"):
            plan = zoi.load(model, arch)
        else:
            plan = zoi.compile(model, shapes=shapes, fix=fix, arch=arch)
        self.session = zoi.Session(plan, cores=cores)

    def bind(self, feeds: Mapping[str, Array]) -> Call:
        run, outputs, copy = self.session.run, self.session.outputs, np.copyto
        pairs = [(self.session.inputs[spec.name], feeds[spec.name]) for spec in self.session.plan.inputs]
        if len(pairs) == 1:
            ((view, array),) = pairs

            def call_one() -> Any:
                copy(view, array)
                run()
                return outputs

            return call_one

        def call() -> Any:
            for view, array in pairs:
                copy(view, array)
            run()
            return outputs

        return call

    def outputs(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return self.session({spec.name: feeds[spec.name] for spec in self.session.plan.inputs})


class OnnxRuntime(Peer):
    """ONNX Runtime's CPU provider with every graph optimisation, called as most code calls it: `run(None, feeds)`."""

    name = "ort"

    def __init__(
        self, model: str, shapes: Mapping[str, Sequence[int]], fix: Mapping[str, Any], cores: Sequence[int]
    ) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = len(cores)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.version = ort.__version__
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        types = {i.name: _NUMPY_TYPES[i.type] for i in self.session.get_inputs()}
        self.fixed = {name: np.asarray(value, types[name]) for name, value in fix.items()}
        self.names = [output.name for output in self.session.get_outputs()]

    def bind(self, feeds: Mapping[str, Array]) -> Call:
        run, every = self.session.run, {**feeds, **self.fixed}
        return lambda: run(None, every)

    def outputs(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return dict(zip(self.names, self.session.run(None, {**feeds, **self.fixed}), strict=True))


class OnnxRuntimeBound(OnnxRuntime):
    """ONNX Runtime through IO binding: inputs and outputs keep their memory from run to run."""

    name = "ort-bound"

    def bind(self, feeds: Mapping[str, Array]) -> Call:
        import onnxruntime as ort

        binding = self.session.io_binding()
        for name, array in {**feeds, **self.fixed}.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
        for name, array in self.outputs(feeds).items():
            binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(array))
        run = self.session.run_with_iobinding
        return lambda: run(binding)


class OpenVino(Peer):
    """OpenVINO's CPU plugin in its latency mode, in float32, through the tensors of one request."""

    name = "openvino"

    def __init__(
        self, model: str, shapes: Mapping[str, Sequence[int]], fix: Mapping[str, Any], cores: Sequence[int]
    ) -> None:
        import openvino as ov

        core = ov.Core()
        network = core.read_model(model)
        if shapes:
            network.reshape({name: list(shape) for name, shape in shapes.items()})
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": len(cores),
            "INFERENCE_PRECISION_HINT": "f32",
        }
        compiled = core.compile_model(network, "CPU", options)
        self.version = ov.__version__.split("-")[0]
        self.request = compiled.create_infer_request()
        self.names = [port.get_any_name() for port in compiled.outputs]
        self.views = {port.get_any_name(): self.request.get_tensor(port).data for port in compiled.inputs}
        for name, value in fix.items():
            if name in self.views:
                self.views[name][...] = value

    def bind(self, feeds: Mapping[str, Array]) -> Call:
        infer, copy = self.request.infer, np.copyto
        pairs = [(self.views[name], array) for name, array in feeds.items()]

        def call() -> Any:
            for view, array in pairs:
                copy(view, array)
            return infer(share_outputs=True)

        return call

    def outputs(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        results = self.bind(feeds)()
        return {name: np.array(results[index]) for index, name in enumerate(self.names)}


_NUMPY_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
PEERS: dict[str, Callable[..., Peer]] = {
    "zoi": Zoi,
    "ort": OnnxRuntime,
    "ort-bound": OnnxRuntimeBound,
    "openvino": OpenVino,
}
MODULES = {"zoi": "zoi", "ort": "onnxruntime", "ort-bound": "onnxruntime", "openvino": "openvino"}


def make(
    name: str,
    model: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int]],
    fix: Mapping[str, Any],
    cores: Sequence[int],
) -> Peer:
    """Loads a model into the peer of this name, one thread for each of `cores`."""
    return PEERS[name](os.fspath(model), shapes, fix, cores)
