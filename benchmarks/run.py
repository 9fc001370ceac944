"""Times every model of the suite and writes `benchmarks/results/<machine>.json`, from which the README's table is made.

    python benchmarks/run.py [NAME ...] [--seconds 3] [--idle-gap-ms 0] [--out FILE]

With names, only the models whose name has one of them in it; their figures replace the old ones in the file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.suite import CASES, Case
from zoi.bench import machine
from zoi.bench.run import run
from zoi.cli import progress, report_table

RESULTS = Path(__file__).resolve().parent / "results"


def measure(case: Case, seconds: float, idle_gap_ms: float, console: Console) -> dict[str, Any]:
    """One model's figures."""
    with progress() as tell:
        report = run(
            case.path(),
            ("zoi", *case.peers),
            case.shapes,
            case.fix,
            case.ranges,
            seconds=seconds,
            idle_gap_ms=idle_gap_ms,
            make_feeds=case.feeds,
            progress=lambda what, share: tell(f"{case.name}: {what}", share),
        )
    console.print(report_table(report))
    figures = report.json()
    del figures["machine"]
    return {"name": case.name, "mmac": case.mmac, **figures}


def main() -> None:
    """Measures, and writes after every model, so that what was measured is kept whatever comes next."""
    parser = argparse.ArgumentParser(description="Time the suite.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--idle-gap-ms", type=float, default=0.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    console, host = Console(), machine.describe(("zoi", "numpy", "onnxruntime", "openvino"))
    gap = f"-gap{arguments.idle_gap_ms:g}ms" if arguments.idle_gap_ms else ""
    path = arguments.out or RESULTS / f"cpu-{_slug(host)}{gap}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    old = json.loads(path.read_text())["models"] if path.exists() else []
    figures = {model["name"]: model for model in old}
    for case in CASES:
        if arguments.names and not any(name in case.name for name in arguments.names):
            continue
        figures[case.name] = measure(case, arguments.seconds, arguments.idle_gap_ms, console)
        models = [figures[c.name] for c in CASES if c.name in figures]
        result = {"date": date.today().isoformat(), "machine": host, "models": models}
        path.write_text(json.dumps(result, indent=1) + "\n")
    console.print(f"written: {path}")


def _slug(host: dict[str, Any]) -> str:
    isa = "avx512" if "avx512f" in host["isa"] else "avx2" if "avx2" in host["isa"] else "generic"
    return re.sub(r"[^a-z0-9]+", "-", f"{host['cpu']} {isa}".lower()).strip("-")


if __name__ == "__main__":
    main()
