"""A plan as Python sees it: what will run, with which kernels, and in exactly how many bytes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from zoi import _native
from zoi.plan.explain import explain

_ITEM_BYTES = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2} | {
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


@dataclass(frozen=True)
class TensorSpec:
    """The name, NumPy type name and shape of an input or output."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor, row-major and without padding."""
        return _ITEM_BYTES[self.dtype] * math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Memory:
    """Exact bytes, known before anything is allocated.

    Attributes:
        weights: Packed weights, owned by the plan and shared by its sessions.
        mapped: Weights used where they lie in the file or the program; not part of `total`.
        arena: Inputs, outputs and intermediates of one session.
        scratch: Working memory of one session's lanes.
        bookkeeping: Calls and arguments of one session.
        total: Everything allocated: weights, arena, scratch and bookkeeping.
        lower_bound: The largest sum of bytes alive at one step; no arena can be smaller.
    """

    weights: int
    mapped: int
    arena: int
    scratch: int
    bookkeeping: int
    total: int
    lower_bound: int


class Plan:
    """An immutable list of steps. Any number of sessions can share one."""

    def __init__(self, native: _native.Plan) -> None:
        self.native = native
        """The C++ plan that this one shows."""

    @staticmethod
    def load(path: str | os.PathLike[str], arch: str = "auto") -> Plan:
        """Reads a saved plan; the same as `zoi.load`."""
        return Plan(_native.Plan.load(os.fspath(path), arch))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a `.zoi` file, which any machine can load: kernels are chosen when it is."""
        self.native.save(os.fspath(path))

    @property
    def name(self) -> str:
        """The model's name."""
        return self.native.name

    @property
    def arch(self) -> str:
        """The best architecture that kernels were chosen from."""
        return self.native.arch

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What a run reads, states included."""
        return tuple(TensorSpec(**info) for info in self.native.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What a run writes, states included."""
        return tuple(TensorSpec(**info) for info in self.native.outputs)

    @property
    def states(self) -> dict[str, str]:
        """Output name -> input name of what one run hands to the next."""
        return {output: into for into, output in self.native.states}

    @property
    def steps(self) -> list[_native.StepInfo]:
        """The steps in order: problem, kernel, operands with their places and bytes."""
        return self.native.steps

    @property
    def memory(self) -> Memory:
        """Exact bytes with one lane."""
        return self.memory_for(1)

    def memory_for(self, lanes: int) -> Memory:
        """Exact bytes with this many lanes."""
        return Memory(**self.native.memory(lanes))

    def explain(self) -> str:
        """The plan as a text table: steps, chosen kernels, offsets and exact bytes."""
        return explain(self.native)

    def __repr__(self) -> str:
        into = ", ".join(map(str, self.inputs))
        out = ", ".join(map(str, self.outputs))
        return f"<zoi.Plan {self.name!r} on {self.arch}: ({into}) -> ({out}), {len(self.steps)} steps>"
