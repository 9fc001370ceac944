"""The `zoi` command: compile, run, bench, profile, inspect, kernels, doctor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import zoi
from zoi.lab.cli import app as lab_app

if TYPE_CHECKING:
    from zoi.bench.run import Progress, Report

app = typer.Typer(
    help="An ONNX file in, a faster answer out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(lab_app, name="lab")
out, err = Console(), Console(stderr=True)

Shape = Annotated[list[str] | None, typer.Option("--shape", metavar="NAME=1,3,224,224", help="Shape of an open input.")]
Fix = Annotated[list[str] | None, typer.Option("--fix", metavar="NAME=VALUE", help="An input that never changes.")]
State = Annotated[list[str] | None, typer.Option("--state", metavar="OUT=IN", help="Output that feeds an input.")]
Arch = Annotated[str, typer.Option("--arch", help="Kernels to choose from; `zoi kernels` lists them.")]
Cores = Annotated[str | None, typer.Option("--cores", metavar="1 or 2,3", help="Cores to pin to, a lane on each.")]
Range = Annotated[list[str] | None, typer.Option("--range", metavar="NAME=LOW:HIGH", help="Range of random values.")]
Model = Annotated[Path, typer.Argument(help="An .onnx file, or a saved .zoi plan.", show_default=False)]


@app.command("compile")
def compile_(
    model: Model,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The plan's file.")] = None,
    shape: Shape = None,
    fix: Fix = None,
    state: State = None,
    arch: Arch = "auto",
) -> None:
    """Compile an ONNX model to a .zoi file."""
    with errors():
        plan = _plan(model, shape, fix, state, arch)
        path = output or model.with_suffix(".zoi")
        plan.save(path)
        out.print(f"{path}: {len(plan.steps)} steps, {plan.memory.total:,} bytes in memory, kernels up to {plan.arch}")


@app.command()
def run(
    model: Model,
    input_: Annotated[list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE.npy")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the outputs to this .npz file.")] = None,
    shape: Shape = None,
    fix: Fix = None,
    range_: Range = None,
    arch: Arch = "auto",
    cores: Cores = None,
) -> None:
    """Run a model once; an input that is not given is random."""
    import numpy as np

    from zoi.bench.inputs import random_feeds

    with errors():
        files = {name: Path(value) for name, value in _pairs(input_, "--input")}
        arrays = {name: np.load(path, allow_pickle=False) for name, path in files.items()}
        shapes = {**{name: array.shape for name, array in arrays.items()}, **_shapes(shape)}
        plan = _plan(model, [f"{n}={','.join(map(str, s))}" for n, s in shapes.items()], fix, None, arch)
        session = zoi.Session(plan, cores=_cores(cores))
        feeds = {**random_feeds(plan.inputs, np.random.default_rng(), _ranges(range_)), **arrays}
        outputs = session(feeds)
        for name, array in outputs.items():
            out.print(f"{name} {array.dtype}{list(array.shape)}", markup=False)
            out.print(np.array2string(array, threshold=20, precision=6), markup=False, highlight=False)
        if output:
            np.savez(output, **outputs)
            out.print(f"written: {output}")


@app.command()
def bench(
    model: Model,
    vs: Annotated[str, typer.Option("--vs", help="Peers: ort, ort-bound, openvino.")] = "ort",
    shape: Shape = None,
    fix: Fix = None,
    range_: Range = None,
    runs: Annotated[int | None, typer.Option("--runs", help="Runs of each; at least 1000 by default if short.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Time for each, where --runs is not given.")] = 3.0,
    cores: Cores = None,
    idle_gap_ms: Annotated[float, typer.Option("--idle-gap-ms", help="Sleep before every run.")] = 0.0,
    memory: Annotated[bool, typer.Option(help="Measure memory too, in processes of their own.")] = True,
    json_: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Write a histogram to this PNG file.")] = None,
) -> None:
    """Time zoi and its peers on one model, in turns, pinned, and checked against each other."""
    from zoi.bench import peers
    from zoi.bench import run as bench_run

    with errors(), progress() as tell:
        names = ["zoi", *(name.strip() for name in vs.split(",") if name.strip())]
        unknown = sorted(set(names) - set(peers.PEERS))
        if unknown:
            raise zoi.InputError(f"--vs {', '.join(unknown)}: the peers are {', '.join(sorted(peers.PEERS))}.")
        report = bench_run.run(
            model,
            names,
            _shapes(shape),
            _fixed(fix),
            _ranges(range_),
            _cores(cores),
            runs,
            seconds,
            idle_gap_ms,
            memory,
            tell,
        )
    out.print(report_table(report))
    for result in report.results:
        if result.failure:
            out.print(f"{result.name} failed: {result.failure}", style="red", markup=False, highlight=False)
    if json_:
        json_.write_text(json.dumps(report.json(), indent=1) + "\n")
    if picture:
        from zoi.report.histogram import histogram

        series = {r.name: r.samples for r in report.results if r.samples is not None}
        histogram(series, picture, f"{report.model}, {report.machine['cpu']}, core {report.cores[0]}")
        out.print(f"written: {picture}")
    if not report.agrees or any(r.failure for r in report.results if r.name == "zoi"):
        raise typer.Exit(1)


@app.command()
def inspect(
    model: Model,
    shape: Shape = None,
    fix: Fix = None,
    state: State = None,
    arch: Arch = "auto",
    graph: Annotated[
        bool, typer.Option("--graph", help="Of an ONNX file: the simplified graph, not the plan.")
    ] = False,
) -> None:
    """Print a model's plan: steps, kernels, offsets and exact bytes; or its simplified graph."""
    with errors():
        if graph and model.suffix != ".zoi":
            from zoi.graph.text import text
            from zoi.passes import simplify

            print(text(simplify(str(model), shapes=_shapes(shape), fix=_fixed(fix))), end="")
        else:
            print(_plan(model, shape, fix, state, arch).explain(), end="")


@app.command()
def profile(
    model: Model,
    shape: Shape = None,
    fix: Fix = None,
    range_: Range = None,
    arch: Arch = "auto",
    cores: Cores = None,
    runs: Annotated[int, typer.Option("--runs", help="Passes over the plan.")] = 200,
    top: Annotated[int | None, typer.Option("--top", help="Only this many of the slowest steps.")] = None,
) -> None:
    """Time every step of a model alone: where its time goes."""
    import numpy as np

    from zoi.bench.inputs import random_feeds
    from zoi.bench.profile import profile as profile_steps

    with errors():
        plan = _plan(model, shape, fix, None, arch)
        feeds = random_feeds(plan.inputs, np.random.default_rng(0), _ranges(range_))
        steps = profile_steps(plan, feeds, list(_cores(cores) or [0]), runs)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("step")
    table.add_column("kernel")
    for column in ("p50", "p99", "share", "GFLOP/s", "GB/s"):
        table.add_column(column, justify="right")
    for step in sorted(steps, key=lambda s: -s.p50)[:top] if top else steps:
        times = (format_us(step.p50), format_us(step.p99), f"{step.share:.1%}")
        table.add_row(step.name, step.kernel, *times, f"{step.gflops:.1f}", f"{step.gbytes:.1f}")
    out.print(table)
    out.print(f"{len(steps)} steps, {format_us(sum(s.p50 for s in steps))} together")


@app.command()
def kernels() -> None:
    """List every kernel, and whether this machine can run it."""
    from zoi import _native

    table = Table("family", "kernel", "arch", "exact", "available", box=None, pad_edge=False)
    for kernel in _native.kernels():
        available = "[green]yes[/]" if kernel["available"] else f"[yellow]no: {kernel['reason']}[/]"
        table.add_row(kernel["family"], kernel["name"], kernel["arch"], "yes" if kernel["exact"] else "", available)
    out.print(table)
    out.print(f"this machine: {', '.join(_native.archs())}")


@app.command()
def doctor() -> None:
    """Say what on this machine costs latency, and how to mend it."""
    from zoi.doctor import examine

    table = Table("", "", "found", "to mend it", box=None, pad_edge=False)
    marks = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "unknown": "[dim]?[/]"}
    for finding in examine():
        table.add_row(marks[finding.status], finding.name, finding.found, finding.mend)
    out.print(table)


def report_table(report: Report) -> Table:
    """A comparison as a table; the speed-up is a peer's median over zoi's."""
    ratios = report.ratios()
    title = f"{report.model}, core {','.join(map(str, report.cores))} of {report.machine['cpu']}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "p50", "p99", "p99.9", "max", "memory", "error", "speed-up"):
        table.add_column(column, justify="left" if not column else "right")
    for result in report.results:
        if result.failure or result.stats is None:
            table.add_row(result.name, "[red]failed[/]", *[""] * 6)
            continue
        stats, agreement = result.stats, result.agreement
        times = [format_us(t) for t in (stats.p50, stats.p99, stats.p999, stats.max)]
        memory = f"{result.memory_bytes / 1e6:.1f} MB" if result.memory_bytes is not None else ""
        error = (
            "reference" if agreement is None else f"{agreement.error:.1e}{'' if agreement.ok else ' [red]differs[/]'}"
        )
        ratio = f"{ratios[result.name]:.2f}x" if result.name in ratios else ""
        table.add_row(f"{result.name} {result.version}", *times, memory, error, ratio)
    return table


def format_us(micros: float) -> str:
    """Microseconds with three figures and a unit."""
    return f"{micros / 1000:.3g} ms" if micros >= 1000 else f"{micros:.3g} µs"


@contextmanager
def errors() -> Iterator[None]:
    """Shows an expected error as one message, without a traceback."""
    try:
        yield
    except (zoi.ZoiError, OSError, ValueError, RuntimeError) as error:
        err.print("[red]error:[/] ", end="")
        err.print(str(error), markup=False, highlight=False)
        raise typer.Exit(2) from error


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on the error stream, whose task is renamed as the work goes on."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    with Bar(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=err, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _plan(
    model: Path, shape: Sequence[str] | None, fix: Sequence[str] | None, state: Sequence[str] | None, arch: str
) -> zoi.Plan:
    if model.suffix == ".zoi":
        return zoi.load(model, arch)
    return zoi.compile(model, _shapes(shape), _fixed(fix), dict(_pairs(state, "--state")), arch)


def _pairs(values: Sequence[str] | None, option: str) -> Iterator[tuple[str, str]]:
    for value in values or ():
        name, equals, rest = value.rpartition("=")
        if not equals or not name:
            _wrong(option, value, "NAME=VALUE")
        yield name, rest


def _shapes(values: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for name, text in _pairs(values, "--shape"):
        try:
            shapes[name] = tuple(int(part) for part in text.replace("x", ",").split(",") if part)
        except ValueError:
            _wrong("--shape", f"{name}={text}", "NAME=1,3,224,224")
    return shapes


def _fixed(values: Sequence[str] | None) -> dict[str, Any]:
    fixed = {}
    for name, text in _pairs(values, "--fix"):
        try:
            fixed[name] = json.loads(text)
        except ValueError:
            _wrong("--fix", f"{name}={text}", "NAME=16000, or NAME=[1,2]")
    return fixed


def _ranges(values: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    ranges = {}
    for name, text in _pairs(values, "--range"):
        low, _, high = text.partition(":")
        try:
            ranges[name] = (float(low), float(high or low))
        except ValueError:
            _wrong("--range", f"{name}={text}", "NAME=LOW:HIGH")
    return ranges


def _cores(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        _wrong("--cores", text, "1 or 2,3")


def _wrong(option: str, value: str, form: str) -> NoReturn:
    raise zoi.InputError(f"{option} {value!r}: the form is {form}.")


if __name__ == "__main__":
    app()
