"""What kind of file is this? Google's file-type model on real files of this machine, beside ONNX Runtime.

    python examples/file_types.py [--files 300] [--runs 1000] [--out .demo]

The model comes from the `magika` package. It reads 1024 bytes from the start and 1024 from the end of a file.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

import zoi
from zoi.bench import agreement, peers
from zoi.bench.run import default_cores, pinned, run
from zoi.cli import progress, report_table
from zoi.report.histogram import histogram

FOLDERS = ("/etc", "/usr/share", "/usr/lib", "/usr/bin", "/usr/include", "/opt", "/var/lib", sys.prefix)
LOOK_SECONDS = 8.0
KINDS = 60

# Of the output's scale. Sums in double (arch="generic") are 3e-2 from ONNX Runtime's on a file of one byte, and 1e-6 on
# long files.
TOLERANCE = 5e-2


class FileTypes:
    """The model's file, its labels, and how a file becomes its input."""

    def __init__(self) -> None:
        package = importlib.util.find_spec("magika")
        if package is None or not package.submodule_search_locations:
            sys.exit("The magika package, which has the model, is not installed: pip install --no-deps magika")
        self.model = max(Path(package.submodule_search_locations[0]).glob("models/standard_*/model.onnx"))
        self.config = json.loads(self.model.with_name("config.min.json").read_text())
        self.labels: list[str] = self.config["target_labels_space"]

    def features(self, path: str) -> npt.NDArray[np.int32] | None:
        """The model's input for a file, or None where it has too few bytes for the model to judge."""
        block, padding = self.config["block_size"], self.config["padding_token"]
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(block).lstrip()
            file.seek(max(0, size - block))
            tail = file.read(block).rstrip()
        if len(head) < self.config["min_file_size_for_dl"]:
            return None
        first, last = self.config["beg_size"], self.config["end_size"]
        tokens = np.full((1, first + last), padding, np.int32)
        head, tail = head[:first], tail[-last:]
        tokens[0, : len(head)] = np.frombuffer(head, np.uint8)
        tokens[0, first + last - len(tail) :] = np.frombuffer(tail, np.uint8)
        return tokens

    def label(self, scores: npt.NDArray[Any]) -> str:
        """The name of the winner."""
        return self.labels[int(np.argmax(scores))]


def find_files(count: int) -> list[str]:
    """Readable files of this machine, of as many kinds as can be found in a few seconds."""
    by_suffix: dict[str, list[str]] = {}
    deadline = time.monotonic() + LOOK_SECONDS
    for path in _walk(deadline):
        suffix = os.path.splitext(path)[1].lower()
        group = by_suffix.setdefault(suffix if suffix[1:].isalpha() and len(suffix) < 8 else "", [])
        if len(group) < count:
            group.append(path)
    common = sorted(by_suffix.values(), key=len, reverse=True)[:KINDS]
    rows = itertools.zip_longest(*map(sorted, common))
    return [path for row in rows for path in row if path][:count]


def _walk(deadline: float) -> Iterator[str]:
    """Files of every folder in turn, so that a large one does not use up the time."""
    walks = [_files(folder) for folder in dict.fromkeys(FOLDERS)]
    while walks and time.monotonic() < deadline:
        for walk in list(walks):
            paths = list(itertools.islice(walk, 50))
            yield from paths
            if not paths:
                walks.remove(walk)


def _files(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.isfile(path) and not os.path.islink(path) and os.access(path, os.R_OK):
                yield path


def main() -> int:
    """Compiles the model, checks it against ONNX Runtime on real files, and times both."""
    parser = argparse.ArgumentParser(description="File types: zoi beside ONNX Runtime.")
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(".demo"))
    arguments = parser.parse_args()
    console, kinds = Console(), FileTypes()
    cores = default_cores()

    with progress() as tell:
        tell("looking for files", 0.0)
        inputs = {}
        for path in find_files(arguments.files):
            features = kinds.features(path)
            if features is not None:
                inputs[path] = features
        tell("compiling", 0.0)
        start = time.perf_counter()
        shapes = {"bytes": next(iter(inputs.values())).shape}
        plan = zoi.compile(kinds.model, shapes=shapes)
        took = time.perf_counter() - start
        session = zoi.Session(plan, cores=cores)
        (name,) = session.outputs
        found, worst = Counter[str](), agreement.Agreement(0.0, True, name)
        differing = []
        with pinned(cores):
            reference = peers.make("ort", kinds.model, shapes, {}, cores)
            for index, (path, tokens) in enumerate(inputs.items()):
                tell(f"comparing {path[-40:]}", index / len(inputs))
                ours, theirs = session(bytes=tokens), reference.outputs({"bytes": tokens})
                worst = worst.merge(agreement.compare(ours, theirs))
                label = kinds.label(ours[name])
                found[label] += 1
                if label != kinds.label(theirs[name]):
                    differing.append((path, label, kinds.label(theirs[name])))
        pool = [{"bytes": tokens} for tokens in inputs.values()]
        report = run(kinds.model, shapes=shapes, cores=cores, runs=arguments.runs, progress=tell, pool=pool)

    console.print(f"[bold]{plan.name}[/]: {len(plan.steps)} steps, compiled in {took:.1f} s, kernels up to {plan.arch}")
    common = ", ".join(f"{label} {times}" for label, times in found.most_common(8))
    console.print(f"{len(inputs)} files of {len(found)} kinds: {common} ...", highlight=False)
    for path, ours, theirs in differing:
        console.print(f"[red]differs[/]: {path}: zoi says {ours}, ONNX Runtime {theirs}")
    verdict = "[green]the same label for every file[/]" if not differing else f"[red]{len(differing)} labels differ[/]"
    console.print(f"against ONNX Runtime: {verdict}, largest error {worst.error:.1e} of the output's scale")
    if not worst.ok:
        console.print(
            "(The model takes variances as E[x^2] - E[x]^2: for short, padded files that is rounding error times 1000, "
            "and no two orders of summation agree to 1e-4.)",
            markup=False,
            highlight=False,
        )
    console.print(report_table(report))
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture = arguments.out / "latency.png"
    series = {result.name: result.samples for result in report.results if result.samples is not None}
    title = f"File-type model of magika, one core of {report.machine['cpu']}"
    histogram(series, picture, title, {"ort": "ONNX Runtime"})
    console.print(f"histogram: {picture}")
    return 0 if worst.error <= TOLERANCE and not differing and len(series) == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
