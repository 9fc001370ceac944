"""Runs one step of one family on every kernel that this machine can run.

Operands are NumPy arrays of any strides: an operand's memory is the span that its view covers, and the strides go into
the problem by the test. Outputs are given as arrays too: their memory is poisoned before the run and receives the
result, so that a kernel that leaves elements out, or writes between them, is seen.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zoi import _native

Array = npt.NDArray[Any]
Operands = Mapping[str, Array | None]
Problem = Mapping[str, int | float | Sequence[int] | Sequence[float]]

DTYPES = ("f4", "f8", "f2", "bf16", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")
"""NumPy's names of the element types in the order of kernel.h."""

POISON = 0xA5
LANES = (1, 2)


def dtype_code(array: Array) -> int:
    """The number of kernel.h for an array's element type."""
    return [np.dtype(d) if d != "bf16" else None for d in DTYPES].index(array.dtype)


def strides(array: Array) -> list[int]:
    """Strides in elements."""
    return [s // array.itemsize for s in array.strides]


def padded(values: Sequence[int], count: int) -> list[int]:
    """`values`, and zeros up to `count`."""
    return [*values, *[0] * (count - len(values))]


def kernels(family: str) -> list[str]:
    """The names of the family's kernels that this machine can run."""
    return [k["name"] for k in _native.kernels() if k["family"] == family and k["available"]]


def _span(array: Array) -> tuple[int, int, int]:
    """(address of the first byte that the view covers, bytes covered, offset of element 0 among them)."""
    if array.size == 0:
        return array.ctypes.data, 0, 0
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low = sum(r for r in reach if r < 0)
    high = sum(r for r in reach if r > 0) + array.itemsize
    return array.ctypes.data + low, high - low, -low


def _bytes(address: int, count: int) -> npt.NDArray[np.uint8]:
    if count == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer((ctypes.c_uint8 * count).from_address(address), np.uint8)


class Step:
    """A program of one step over the given operands.

    With `in_place`, the step works on copies of its inputs that nobody needs afterwards, so that its results may take
    their memory where the family allows it.
    """

    def __init__(self, family: str, problem: Problem, operands: Operands, in_place: bool = False) -> None:
        declared = next(f for f in _native.families() if f["name"] == family)["operands"]
        unknown = set(operands) - {o["name"] for o in declared}
        assert not unknown, f"{family} has no operands {unknown}"
        self.program = _native.Program("test")
        self.inputs: dict[str, npt.NDArray[np.uint8]] = {}
        self.outputs: dict[str, tuple[Array, int, int]] = {}
        refs: list[tuple[int, int] | None] = []
        copies: list[tuple[int, int, int]] = []
        for operand in declared:
            name, array = operand["name"], operands.get(operand["name"])
            if array is None:
                refs.append(None)
                continue
            address, count, offset = _span(array)
            memory = _bytes(address, count)
            if operand["role"] == "weight":
                refs.append((self.program.constant(memory.copy(), name), offset))
                continue
            buffer = self.program.buffer(max(count, 1), name)
            work = self.program.buffer(max(count, 1), name) if in_place else buffer
            refs.append((work, offset))
            if operand["role"] == "in":
                self.program.input(name, "uint8", (count,), buffer)
                self.inputs[name] = memory.copy()
                if in_place:
                    self._copy(buffer, work, count)
            else:
                self.program.output(name, "uint8", (count,), buffer)
                self.outputs[name] = (array, address, count)
                copies.append((work, buffer, count))
        self.program.step("step", family, problem, refs)
        for source, target, count in copies if in_place else ():
            self._copy(source, target, count)

    def _copy(self, source: int, target: int, count: int) -> None:
        u8 = DTYPES.index("u1")
        problem = {"ndim": 1, "shape": [count], "inputs": 1, "in_dtype": [u8], "in_stride": [1], "out_dtype": u8,
                   "out_stride": [1], "compute": 0, "length": 1, "code": [0, 0, 0, 0]}  # fmt: skip
        refs = [(source, 0), *[None] * 7, (target, 0)]
        self.program.step(f"copy {source} to {target}", "pointwise", problem, refs)

    def run(self, kernel: str, lanes: int = 1) -> None:
        """Runs the step and copies what it wrote into the out operands. Raises ValueError where it is unsupported."""
        session = _native.Session(_native.Plan(self.program, pick={"step": kernel}), lanes=lanes, split_all=True)
        for name, memory in self.inputs.items():
            session.input(name)[...] = memory
        for name in self.outputs:
            session.output(name)[...] = POISON
        session.run()
        for name, (_, address, count) in self.outputs.items():
            _bytes(address, count)[...] = session.output(name)
        for name, memory in self.inputs.items():
            assert np.array_equal(session.input(name), memory), f"{kernel} wrote into its input {name}"

    def places(self, kernel: str) -> dict[str, int]:
        """The offset in the arena of every operand of the step."""
        plan = _native.Plan(self.program, pick={"step": kernel})
        step = next(s for s in plan.steps if s["name"] == "step")
        return {o["name"]: o["offset"] for o in step["operands"] if o.get("place") == "arena"}


def check(family: str, problem: Problem, operands: Operands) -> None:
    """Raises ValueError if the family's `check` refuses the problem."""
    _native.Plan(Step(family, problem, operands).program)


def run_everywhere(
    family: str, problem: Problem, operands: Operands, must: Sequence[str] = ("generic",), in_place: bool = False
) -> Iterator[str]:
    """Runs every kernel that supports the problem; yields its name once the out operands hold its result.

    On two lanes the bits must be those of one lane. `must` names architectures of which one kernel has to support the
    problem if this machine can run it.
    """
    step = Step(family, problem, operands, in_place)
    supported: set[str] = set()
    for kernel in kernels(family):
        arch = next(k["arch"] for k in _native.kernels() if k["name"] == kernel)
        first: dict[str, npt.NDArray[np.uint8]] | None = None
        try:
            for lanes in LANES:
                step.run(kernel, lanes)
                found = {name: _bytes(address, count).copy() for name, (_, address, count) in step.outputs.items()}
                if first is None:
                    first = found
                for name, memory in found.items():
                    assert np.array_equal(memory, first[name]), f"{kernel}: other bits in {name} on {lanes} lanes"
        except ValueError:
            continue
        supported.add(arch)
        yield kernel
    missing = set(must) & set(_native.archs()) - supported
    assert not missing, f"no kernel of {missing} supports this problem"


def gaps_untouched(array: Array) -> bool:
    """Whether the bytes that an out operand's view covers, but that are no elements of it, kept their poison."""
    address, count, offset = _span(array)
    element = np.zeros(count, bool)
    index = np.full(array.shape, offset, np.int64)
    for d, (n, s) in enumerate(zip(array.shape, array.strides, strict=True)):
        index = index + np.arange(n).reshape([-1 if k == d else 1 for k in range(array.ndim)]) * s
    for byte in range(array.itemsize):
        element[index.ravel() + byte] = True
    return bool(np.all(_bytes(address, count)[~element] == POISON))


def strided(rng: np.random.Generator, shape: Sequence[int], dtype: Any = np.float32, dense: bool = False) -> Array:
    """An uninitialised array of `shape`: dense, or with permuted dimensions and gaps."""
    if dense or not shape:
        return np.zeros(shape, dtype)
    order = rng.permutation(len(shape))
    gaps = rng.integers(0, 2, len(shape))
    base = np.zeros([shape[d] + int(g) for d, g in zip(order, gaps, strict=True)], dtype)
    view = base[tuple(slice(0, shape[d]) for d in order)]
    return view.transpose(np.argsort(order))


def assert_close(found: Array, wanted: Array, rtol: float = 2e-6, atol: float = 0.0, what: str = "") -> None:
    """NaN and infinities must agree exactly; the rest within rtol of the value or atol of the largest one."""
    wanted = wanted.astype(np.float64)
    scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)
    with np.errstate(over="ignore"):
        as_stored = wanted.astype(found.dtype).astype(np.float64) if found.dtype.kind == "f" else wanted
    np.testing.assert_allclose(
        found.astype(np.float64), as_stored, rtol=rtol, atol=atol * scale, equal_nan=True, err_msg=what
    )
