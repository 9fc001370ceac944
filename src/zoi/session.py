"""A session: a plan's mutable state, bound to memory and to cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from zoi import _native
from zoi.errors import InputError
from zoi.plan import Memory, Plan, TensorSpec


class Session:
    """Runs a plan. One thread at a time may use a session; a plan may have any number of them.

    Attributes:
        plan: The plan that is run.
        run: Runs the plan once on what `inputs` hold. It is the C++ method itself, and releases the GIL.
        reset: Zeroes every state.
        profile: For each step, its nanoseconds in each of this many passes, on one lane (`zoi profile`).
        inputs: Input name -> writable view of the arena. Write into it: `s.inputs["x"][...] = a`.
        outputs: Output name -> view of the arena, overwritten by the next run.
    """

    def __init__(
        self,
        plan: Plan | str | os.PathLike[str],
        cores: Sequence[int] | None = None,
        lanes: int = 0,
        armed: bool = False,
        lock: bool = False,
        huge_pages: bool = False,
        flush_denormals: bool = False,
        arch: str = "auto",
    ) -> None:
        """Allocates everything that running needs, so that a run allocates nothing.

        Args:
            plan: A plan, or the path of a saved one.
            cores: The cores to pin lanes to, the caller's first. By default nothing is pinned.
            lanes: How many threads share the work, the caller among them; 0 means one for each of `cores`.
            armed: Keep the other lanes spinning between runs: the quickest start, at the price of busy cores.
            lock: Lock the arena in memory.
            huge_pages: Ask for huge pages for the arena.
            flush_denormals: Treat denormal numbers as zero while running.
            arch: Where `plan` is a path: the architecture to choose kernels from.
        """
        self.plan = plan if isinstance(plan, Plan) else Plan.load(plan, arch)
        native = _native.Session(self.plan.native, cores, lanes, armed, lock, huge_pages, flush_denormals)
        self.run: Callable[[], None] = native.run
        self.reset: Callable[[], None] = native.reset
        self.profile: Callable[[int], list[list[float]]] = native.profile
        states = self.plan.states
        self.inputs = _views(native.input, [s.name for s in self.plan.inputs], set(states.values()))
        self.outputs = _views(native.output, [s.name for s in self.plan.outputs], set(states))
        self._native = native
        self._specs = {s.name: s for s in self.plan.inputs}
        self._optional = set(states.values())

    @property
    def lanes(self) -> int:
        """How many threads share the work."""
        return self._native.lanes

    @property
    def memory(self) -> Memory:
        """What was allocated, counted at the allocations."""
        return Memory(**self._native.memory)

    def __call__(self, feeds: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Checks and copies the inputs in, runs once, and returns copies of the outputs.

        Args:
            feeds: Input name -> array, for names that are no Python identifiers.
            named: Input name -> array. A state may be left out: it keeps what the last run left.

        Raises:
            InputError: A name is unknown or missing, or a shape or type differs from the plan's.
        """
        feeds = {**(feeds or {}), **named}
        arrays = check_feeds(self.plan.name, self._specs, feeds, self._optional)
        for name, array in arrays.items():
            self.inputs[name][...] = array
        self.run()
        return {name: view.copy() for name, view in self.outputs.items()}

    def __repr__(self) -> str:
        return f"<zoi.Session of {self.plan!r} on {self.lanes} lane{'s' if self.lanes > 1 else ''}>"


def check_feeds(
    model: str, specs: Mapping[str, TensorSpec], feeds: Mapping[str, Any], optional: Container[str] = ()
) -> dict[str, Any]:
    """The feeds as arrays, or an `InputError` that names what does not fit.

    Arrays must have the very type of the input. Python numbers and lists become that type if nothing is lost.
    """
    expected = ", ".join(map(str, specs.values()))
    unknown = [name for name in feeds if name not in specs]
    if unknown:
        raise InputError(f"model {model!r}: no input named {', '.join(map(repr, unknown))}; its inputs are {expected}.")
    missing = [name for name in specs if name not in feeds and name not in optional]
    if missing:
        raise InputError(f"model {model!r}: missing {', '.join(map(repr, missing))}; its inputs are {expected}.")
    return {name: _as_input(model, specs[name], value) for name, value in feeds.items()}


def _as_input(model: str, spec: TensorSpec, value: Any) -> Any:
    import numpy as np

    try:
        found = np.asarray(value)
    except ValueError as error:
        raise InputError(f"model {model!r}, input {spec}: not an array: {error}.") from error
    array = found
    if not hasattr(value, "dtype") and found.dtype.kind in "biuf":
        array = found.astype(spec.dtype)
        if array.dtype.kind != "f" and not np.array_equal(array, found):
            raise InputError(f"model {model!r}, input {spec}: some of these values do not fit that type.")
    if array.dtype != np.dtype(spec.dtype):
        raise InputError(
            f"model {model!r}, input {spec}: found type {found.dtype}; convert it with .astype({spec.dtype!r})."
        )
    if array.shape != spec.shape:
        raise InputError(
            f"model {model!r}, input {spec}: found shape {list(array.shape)}; a plan runs the shapes it was compiled "
            "for, so compile another with zoi.compile(..., shapes=...)."
        )
    return array


class _LiveViews(Mapping[str, Any]):
    """Views of which some move: a state is read where the last run wrote it."""

    def __init__(self, view: Callable[[str], Any], names: Sequence[str], moving: set[str]) -> None:
        self._view = view
        self._fixed = {name: None if name in moving else view(name) for name in names}

    def __getitem__(self, name: str) -> Any:
        view = self._fixed[name]
        return self._view(name) if view is None else view

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


def _views(view: Callable[[str], Any], names: Sequence[str], moving: set[str]) -> Mapping[str, Any]:
    """Name -> view. Read-only, so that `inputs["x"] = a` is an error rather than a run on old data."""
    if moving:
        return _LiveViews(view, names, moving)
    return MappingProxyType({name: view(name) for name in names})
