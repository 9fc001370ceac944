"""Records of the GPU kernels: what one computes, where it runs, its configurations, how its source is specialised.

A record holds no launching code: the executor, the lab and the tuner are its clients. `kernel` makes one of a
`@triton.jit` function, `cuda` one of CUDA C++; both work from outside the tree too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoi.device.cuda.arrays import Array

Config = Mapping[str, Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Workload:
    """A definition with numbers: sizes of its axes, the dtype of its inputs, and options such as `causal`."""

    definition: str
    axes: Mapping[str, int]
    dtype: str = "bf16"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, axis: str) -> int:
        return self.axes[axis]

    def option(self, name: str, default: Any = None) -> Any:
        """An option, or its default."""
        return self.options.get(name, default)

    @property
    def name(self) -> str:
        """One line that says all: `b1 s16384 ... bf16 causal`."""
        axes = " ".join(f"{key}={value}" for key, value in self.axes.items())
        options = " ".join(f"{key}={value}" for key, value in sorted(self.options.items()) if value)
        return " ".join(part for part in (axes, self.dtype, options) if part)


@dataclass(frozen=True)
class Machine:
    """What a configuration may depend on."""

    capability: int = 90
    multiprocessors: int = 132

    @property
    def arch(self) -> str:
        """The compiler's name of it; Hopper and later with the instructions of that chip alone."""
        return f"sm_{self.capability}{'a' if self.capability >= 90 else ''}"


@dataclass(frozen=True)
class Build:
    """One specialised kernel: what to compile, and what to launch it with."""

    defines: Mapping[str, str | int]
    entry: str
    grid: tuple[int, int, int]
    threads: int
    pack: Callable[[Arrays, int], list[bytes]]  # parameters, from the arrays and the address of the scratch memory
    shared: int = 0
    cluster: int = 1
    scratch: int = 0  # bytes; zeroed once, and left zeroed by every run


@dataclass(frozen=True)
class Solution:
    """A kernel that computes a definition."""

    name: str
    definition: str
    language: str
    arch: int  # the least compute capability
    configs: Callable[[Workload, Machine], Sequence[Config]]  # the best guess first; none where it does not apply
    source: Path | str = ""
    build: Callable[[Workload, Config, Machine], Build] | None = None
    function: Any = None  # of Triton
    grid: Callable[[Workload, Config, Machine], tuple[int, ...]] | None = None
    exact_arch: bool = False  # runs on this capability alone


def cuda(**fields: Any) -> Callable[[Callable[[Workload, Config, Machine], Build]], Solution]:
    """Makes a record of a CUDA C++ kernel; decorates the function that specialises it."""

    def record(build: Callable[[Workload, Config, Machine], Build]) -> Solution:
        return Solution(language="cuda", build=build, **fields)

    return record


def kernel(definition: str, **fields: Any) -> Callable[[Any], Solution]:
    """Makes a record of a `@triton.jit` function.

    Its parameters are found by name: a tensor's name is its address, `stride_<tensor>_<n>` a stride in elements, an
    axis's or option's name its value, `scale` the definition's scale, and the constants come from the configuration.
    """

    def record(function: Any) -> Solution:
        fields.setdefault("name", function.__name__)
        return Solution(definition=definition, language="triton", function=function, **fields)

    return record


def parameter(layout: str, *values: float) -> bytes:
    """The bytes of a kernel parameter; a struct is aligned as C aligns it. Letters are those of `struct`."""
    return struct.pack(f"@{layout}", *values)


def ceil_div(a: int, b: int) -> int:
    """A / b, rounded up."""
    return -(-a // b)
