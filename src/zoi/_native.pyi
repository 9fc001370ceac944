"""The C++ side: programs, plans and sessions. There is no logic in the binding."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy.typing as npt

Array = npt.NDArray[Any]
OperandRef = tuple[int, int] | None
"""(buffer id, byte offset), or None where an optional operand is missing."""

class TensorInfo(TypedDict):
    name: str
    dtype: str  # NumPy's name: "float32", "int64", "bool", ...
    shape: tuple[int, ...]

class StepInfo(TypedDict):
    name: str
    family: str
    kernel: str
    arch: str
    problem: dict[str, int | float | list[int] | list[float]]
    operands: list[dict[str, Any]]  # name, role, buffer, place ("arena" | "weights" | "mapped"), offset, bytes
    flops: float
    slices: int
    scratch: int
    why: str  # why this kernel and not the ones before it in the table

class MemoryInfo(TypedDict):
    weights: int  # packed weights, owned by the plan and shared by its sessions
    mapped: int  # weights used in place from the file or from the program, not copied
    arena: int  # inputs, outputs and intermediates of one session
    scratch: int  # of one session, all lanes
    bookkeeping: int  # calls and arguments of one session
    total: int  # weights + arena + scratch + bookkeeping
    lower_bound: int  # the largest sum of bytes alive at one step: no arena can be smaller

class Program:
    """A flat list of problems over buffers: all that Python says to C++."""

    def __init__(self, name: str) -> None: ...
    def buffer(self, size: int, name: str = "") -> int:
        """Adds working memory of `size` bytes; returns its id."""
    def constant(self, data: Array, name: str = "") -> int:
        """Adds constant data (kept alive, not copied); returns its buffer id."""
    def input(self, name: str, dtype: str, shape: Sequence[int], buffer: int) -> None:
        """Declares a buffer as a contiguous row-major input. It keeps its value during and after a run."""
    def output(self, name: str, dtype: str, shape: Sequence[int], buffer: int, offset: int = 0) -> None:
        """Declares a contiguous row-major output at `offset` bytes of a working buffer."""
    def state(self, input: str, output: str) -> None:
        """The output of one run is the input of the next, without a copy."""
    def step(
        self,
        name: str,
        family: str,
        problem: Mapping[str, int | float | Sequence[int] | Sequence[float]],
        operands: Sequence[OperandRef],
    ) -> None:
        """Appends a step. Fields left out are 0; an unknown field or a wrong count of operands raises ValueError."""

class Plan:
    def __init__(self, program: Program, arch: str = "auto", pick: Mapping[str, str] = ...) -> None:
        """Chooses a kernel for each step (`pick`: step name -> kernel name overrules) and lays out memory.

        Raises ValueError where a step is invalid, naming it. Allocates no tensor.
        """
    @staticmethod
    def load(path: str, arch: str = "auto") -> Plan: ...
    def save(self, path: str) -> None: ...
    def validate(self) -> None:
        """Raises RuntimeError if two buffers that live at the same time share a byte."""
    def memory(self, lanes: int = 1) -> MemoryInfo: ...
    @property
    def name(self) -> str: ...
    @property
    def arch(self) -> str: ...
    @property
    def inputs(self) -> list[TensorInfo]: ...
    @property
    def outputs(self) -> list[TensorInfo]: ...
    @property
    def states(self) -> list[tuple[str, str]]: ...
    @property
    def steps(self) -> list[StepInfo]: ...

class Session:
    def __init__(
        self,
        plan: Plan,
        cores: Sequence[int] | None = None,
        lanes: int = 0,
        armed: bool = False,
        lock: bool = False,
        huge_pages: bool = False,
        flush_denormals: bool = False,
        split_all: bool = False,  # share even the steps that are too small to gain from it; for tests
    ) -> None: ...
    def run(self) -> None: ...
    def profile(self, runs: int) -> list[list[float]]:
        """For each step, its nanoseconds in each of `runs` passes over the plan, on one lane."""
    def reset(self) -> None:
        """Zeroes every state."""
    def input(self, name: str) -> Array:
        """A writable view of the input in the arena. A bound state's view is where the next run reads it."""
    def output(self, name: str) -> Array:
        """A view of the output in the arena. A bound state's view is where the last run wrote it."""
    @property
    def memory(self) -> MemoryInfo:
        """What was allocated, counted at the allocations."""
    @property
    def lanes(self) -> int: ...

def host_arch() -> str: ...
def archs() -> list[str]:
    """The architectures that this build has and this machine can run, best first."""

def kernels() -> list[dict[str, Any]]:
    """Every variant of every family: family, name, arch, available, reason, exact."""

def families() -> list[dict[str, Any]]:
    """Every family: name, operands (name, role, optional), fields (name, count, real)."""

def features() -> dict[str, bool]:
    """CPUID features that matter to the kernels."""
