"""From a model to a plan: import, simplify, lower, then let C++ choose kernels and lay out memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from zoi import _native
from zoi.plan import Plan

if TYPE_CHECKING:
    import onnx
    import onnx_ir

Model: TypeAlias = Union[str, "os.PathLike[str]", bytes, "onnx.ModelProto", "onnx_ir.Model"]


def compile(
    model: Model,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fix: Mapping[str, Any] | None = None,
    state: Mapping[str, str] | None = None,
    arch: str = "auto",
    name: str | None = None,
) -> Plan:
    """Compiles an ONNX model for this machine.

    Args:
        model: A file, its bytes, or a model already loaded.
        shapes: Input name -> shape, for the inputs whose shape the model leaves open.
        fix: Input name -> value, for inputs that are the same in every run. They stop being inputs.
        state: Output name -> input name of what one run hands to the next, kept in memory with no copy.
        arch: "auto", or one of `zoi kernels`, to run that architecture's kernels and none better.
        name: The plan's name in texts and errors; by default the file's.

    Raises:
        UnsupportedOperator: An operator, or a form of one, has no kernel here.
        InputError: `shapes`, `fix` or `state` do not fit the model.
    """
    # Imported here, so that a saved plan runs where ONNX is not installed, and `import zoi` stays quick.
    from zoi.passes import simplify
    from zoi.passes.lower import lower

    graph = simplify(model, shapes=shapes, fix=fix, name=name)
    return Plan(_native.Plan(lower(graph, state=state), arch))


def load(path: str | os.PathLike[str], arch: str = "auto") -> Plan:
    """Reads a saved plan (a `.zoi` file) and chooses this machine's kernels for it."""
    return Plan(_native.Plan.load(os.fspath(path), arch))
