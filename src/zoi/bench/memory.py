"""What a model costs in resident memory: the growth of a fresh process over the imported library, after two runs.

The child imports NumPy and the library first, then loads, runs twice on random inputs and reports. zoi loads a saved
plan, as a program in service would; the others load the ONNX file, as they do in service.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zoi.plan import TensorSpec


def resident_bytes() -> int:
    """Resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status has no VmRSS line")


def growth(
    peer: str,
    model: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int]],
    fix: Mapping[str, Any],
    specs: Sequence[TensorSpec],
    core: int,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> int:
    """Bytes by which a child process grows when `peer` loads `model` and runs it twice.

    Raises:
        RuntimeError: The child failed; the message has what it said.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.fspath(model)
        if peer == "zoi" and not path.endswith(".zoi"):
            import zoi

            path = os.path.join(folder, "model.zoi")
            zoi.compile(model, shapes=shapes, fix=fix).save(path)
        request = {
            "peer": peer,
            "model": path,
            "shapes": {name: list(shape) for name, shape in shapes.items()},
            "fix": dict(fix),
            "inputs": [(s.name, s.dtype, s.shape) for s in specs],
            "core": core,
            "ranges": dict(ranges or {}),
        }
        child = [sys.executable, "-m", "zoi.bench.memory", json.dumps(request)]
        done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"memory of {peer}: the child process failed: {done.stderr.strip()[-500:]}")
    return int(done.stdout.split()[-1])


def _child(request: dict[str, Any]) -> int:
    import importlib

    import numpy as np

    from zoi.bench import inputs, peers

    os.sched_setaffinity(0, {request["core"]})
    specs = [TensorSpec(name, dtype, tuple(shape)) for name, dtype, shape in request["inputs"]]
    feeds = inputs.random_feeds(specs, np.random.default_rng(0), request["ranges"])
    importlib.import_module(peers.MODULES[request["peer"]])
    before = resident_bytes()
    peer = peers.make(request["peer"], request["model"], request["shapes"], request["fix"], [request["core"]])
    call = peer.bind(feeds)
    call()
    call()
    return resident_bytes() - before


if __name__ == "__main__":
    print(_child(json.loads(sys.argv[1])))
