"""The GPU under test: memory for operands, random data, and solutions made ready to launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zoi.device.cuda import Cubin, compile_cuda
from zoi.device.cuda.arrays import Array, dense
from zoi.kernels.registry import Config, Machine, Solution, Workload, parameter
from zoi.lab.definition import Tensor
from zoi.lab.dtypes import STORAGE

_CODES = {"bf16": 0, "f16": 1, "f32": 2, "e4m3": 3, "i8": 4}


@dataclass
class Bound:
    """A solution ready for one workload, configuration and set of operands."""

    launch: Any
    info: dict[str, Any]
    keep: tuple[Any, ...]

    def run(self, stream: int = 0) -> None:
        """Launches it."""
        self.launch.run(stream)


class Gpu:
    """One GPU, and what the lab keeps on it."""

    def __init__(self, ordinal: int = 0) -> None:
        from zoi import _cuda

        self.cuda = _cuda
        self.device = _cuda.device(ordinal)
        self.machine = Machine(self.device.capability, self.device.multiprocessors)
        self._functions: dict[Any, Any] = {}
        self._seed = int(np.random.default_rng().integers(1 << 62))

    def facts(self) -> dict[str, Any]:
        """What a trace says of the hardware."""
        return {
            "gpu": self.device.name,
            "capability": self.device.capability,
            "multiprocessors": self.device.multiprocessors,
            "memory_bytes": self.device.memory,
            "clock_mhz": self.device.clock_khz // 1000,
            "driver": self.cuda.driver_version(),
        }

    def empty(self, tensor: Tensor) -> Array:
        """Memory for a tensor."""
        buffer = self.cuda.Buffer(self.device, tensor.bytes)
        return dense(buffer.pointer, tensor.shape, tensor.dtype, buffer)

    def random(self, tensor: Tensor) -> Array:
        """A tensor of fresh normal random values."""
        array = self.empty(tensor)
        self.randomize(array, tensor.spread if tensor.dtype != "i8" else 40.0)
        return array

    def randomize(self, array: Array, spread: float = 1.0) -> None:
        """Fresh values in place."""
        self._seed += 1
        source = Path(__file__).with_name("random.cuh")
        function, _ = self.function(source, self.machine.arch, {}, "fill_normal", 0)
        count = int(np.prod(array.shape))
        words = [parameter("Q", value) for value in (array.pointer, count, self._seed)]
        rest = [parameter("f", spread), parameter("i", _CODES[array.dtype])]
        self.cuda.Launch(function, (self.machine.multiprocessors * 8, 1, 1), 256, [*words, *rest]).run()
        self.device.synchronize()

    def operands(self, tensors: tuple[Tensor, ...]) -> dict[str, Array]:
        """Random inputs and poisoned outputs."""
        arrays = {t.name: self.empty(t) if t.output else self.random(t) for t in tensors}
        self.poison(arrays, tensors)
        return arrays

    def poison(self, arrays: Mapping[str, Array], tensors: tuple[Tensor, ...]) -> None:
        """Fills outputs with ones in every bit: NaN in all floating types."""
        for tensor in tensors:
            if tensor.output:
                self.device.fill(arrays[tensor.name].pointer, 0xFF, tensor.bytes)
        self.device.synchronize()

    def read(self, array: Array) -> npt.NDArray[Any]:
        """An array's stored bits."""
        out = np.empty(array.shape, STORAGE[array.dtype])
        self.device.copy_out(out, array.pointer)
        return out

    def write(self, array: Array, bits: npt.NDArray[Any]) -> None:
        """Stores bits in an array."""
        self.device.copy_in(array.pointer, np.ascontiguousarray(bits))
        self.device.synchronize()

    def function(self, source: Path | str, arch: str, defines: Mapping[str, str | int], entry: str, shared: int) -> Any:
        """A compiled and loaded function, and facts about it."""
        key = (source, arch, tuple(sorted(defines.items())), entry, shared)
        if key not in self._functions:
            cubin = compile_cuda(source, arch, defines)
            self._functions[key] = self.load(cubin, entry, shared)
        return self._functions[key]

    def load(self, cubin: Cubin, entry: str, shared: int) -> tuple[Any, dict[str, Any]]:
        """A function of a cubin, and facts about it."""
        function = self.cuda.Function(self.cuda.Module(self.device, cubin.image), entry, shared)
        info = {"compiler": cubin.compiler, "source": cubin.source_hash, "registers": function.registers}
        return function, {**info, "local_bytes": function.local_bytes}

    def bind(self, solution: Solution, w: Workload, config: Config, arrays: Mapping[str, Array]) -> Bound:
        """Makes a solution ready: compiles or finds it, and packs its parameters."""
        if solution.language == "triton":
            from zoi.lab.ahead import bind_triton

            return bind_triton(self, solution, w, config, arrays)
        assert solution.build
        build = solution.build(w, config, self.machine)
        function, info = self.function(solution.source, self.machine.arch, build.defines, build.entry, build.shared)
        scratch = self.cuda.Buffer(self.device, build.scratch) if build.scratch else None
        if scratch:
            self.device.fill(scratch.pointer, 0, build.scratch)
            self.device.synchronize()
        parameters = build.pack(arrays, scratch.pointer if scratch else 0)
        launch = self.cuda.Launch(function, build.grid, build.threads, parameters, build.cluster)
        return Bound(launch, {**info, "config": dict(config)}, (arrays, scratch))
