"""`zoi lab`: list, check, bench, tune, report, compare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from zoi.device.cuda import unavailable
from zoi.kernels.registry import Machine, Solution, Workload
from zoi.lab.suites import BENCH, CHECKS

app = typer.Typer(help="Kernels on the GPU: check, time, tune, compare.", no_args_is_help=True, add_completion=False)
out, err = Console(), Console(stderr=True)

Only = Annotated[str, typer.Option("--only", help="Part of a workload's line, such as `dim=128` or `causal`.")]
Names = Annotated[list[str] | None, typer.Option("--solution", "-s", help="Solutions; all of the family by default.")]
Family = Annotated[str, typer.Argument(help=f"One of {', '.join(BENCH)}.")]


@app.command("list")
def list_() -> None:
    """List every solution, what it computes, and the GPUs that it runs on."""
    from zoi.lab.solutions import solutions

    table = Table("definition", "solution", "language", "from", box=None, pad_edge=False)
    for s in solutions():
        table.add_row(s.definition, s.name, s.language, f"sm_{s.arch}{' alone' if s.exact_arch else ''}")
    out.print(table)
    reason = unavailable()
    out.print(f"this machine: {reason}" if reason else "this machine: a GPU is there", markup=False)


@app.command()
def check(family: Family, solution: Names = None, only: Only = "", all_configs: bool = False) -> None:
    """Check solutions on ragged, tiny and ordinary workloads against float64."""
    from zoi.lab.check import check as run_check
    from zoi.lab.machine import Gpu

    _need_gpu()
    gpu = Gpu()
    failed = 0
    for s, w in _pairs(family, CHECKS, solution, only):
        for config in list(s.configs(w, gpu.machine))[: None if all_configs else 1]:
            verdict = run_check(gpu, s, w, config)
            failed += not verdict.passed
            result = "[green]ok[/]" if verdict.passed else f"[red]wrong[/] {'; '.join(verdict.failures)}"
            out.print(f"{s.name} {w.name} {dict(config)} {verdict.relative:.1e} {result}", highlight=False)
    if failed:
        raise typer.Exit(1)


@app.command()
def bench(
    family: Family,
    solution: Names = None,
    only: Only = "",
    json_: Annotated[Path | None, typer.Option("--json", help="Write the traces to this file.")] = None,
    peers: Annotated[bool, typer.Option(help="Time torch's kernels beside, where torch is installed.")] = True,
    all_configs: Annotated[bool, typer.Option(help="Time every configuration, not the first guess alone.")] = False,
    ms: Annotated[float, typer.Option(help="Milliseconds of running for each contender.")] = 12.0,
) -> None:
    """Time solutions beside their peers, and check what was timed."""
    from zoi.lab import bench as lab_bench
    from zoi.lab.machine import Gpu
    from zoi.lab.trace import Run

    _need_gpu()
    gpu = Gpu()
    traces = []
    for s, w in _pairs(family, BENCH, solution, only):
        configs = s.configs(w, gpu.machine) if all_configs else None
        trace = lab_bench.bench(gpu, s, w, configs, peers, ms)
        if trace:
            traces.append(trace)
            out.print(lab_bench.line(trace), markup=False, highlight=False, soft_wrap=True)
            if json_:
                Run(gpu.facts(), traces).save(json_)
    if not all(t.check["passed"] for t in traces):
        raise typer.Exit(1)


@app.command()
def tune(family: Family, solution: Names = None, only: Only = "", seconds: float = 20.0) -> None:
    """Find each workload's fastest configuration, and keep it on disk."""
    from zoi.lab.machine import Gpu
    from zoi.lab.tune import tune as run_tune

    _need_gpu()
    gpu = Gpu()
    for s, w in _pairs(family, BENCH, solution, only):
        if s.configs(w, gpu.machine):
            best, times = run_tune(gpu, s, w, seconds)
            out.print(f"{s.name} {w.name}: {json.dumps(dict(best))} of {len(times)}", markup=False, highlight=False)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Files of traces, the newest last.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path("lab.html"),
) -> None:
    """Write one self-contained HTML page."""
    from zoi.lab.report import html
    from zoi.lab.trace import Run

    output.write_text(html([Run.load(path) for path in runs]))
    out.print(f"written: {output}")


@app.command()
def compare(
    old: Path, new: Path, tolerance: Annotated[float, typer.Option(help="Slower by this share fails.")] = 0.05
) -> None:
    """Compare two files of traces; fails where something became slower or wrong."""
    from zoi.lab.compare import compare as run_compare
    from zoi.lab.trace import Run

    result = run_compare(Run.load(old), Run.load(new))
    table = Table("solution", "workload", "old µs", "new µs", "speed-up", box=None, pad_edge=False)
    for c in result.changes:
        table.add_row(c.solution, c.workload, f"{c.old_us:.1f}", f"{c.new_us:.1f}", f"{c.speedup:.2f}x")
    out.print(table)
    if not result.same_gpu:
        err.print("The runs are from different GPUs.", style="yellow")
    for name in result.missing:
        err.print(f"not in the new run: {name}", markup=False, style="yellow")
    out.print(f"{len(result.changes)} workloads, {result.mean:.3f}x as the geometric mean")
    if result.regressions(tolerance):
        raise typer.Exit(1)


def _pairs(
    family: str, suites: dict[str, list[Workload]], names: list[str] | None, only: str
) -> Iterator[tuple[Solution, Workload]]:
    from zoi.lab.solutions import solutions

    if family not in suites:
        raise typer.BadParameter(f"'{family}'; there are {', '.join(suites)}")
    for s in solutions():
        if names and s.name not in names:
            continue
        for w in suites[family]:
            if w.definition == s.definition and only in w.name and s.configs(w, Machine()):
                yield s, w


def _need_gpu() -> None:
    reason = unavailable()
    if reason:
        err.print("error: ", style="red", end="")
        err.print(reason, markup=False, highlight=False)
        raise typer.Exit(2)
