"""One HTML page of a run: a table and bars of the speed against peers, with nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from zoi.lab.trace import Run, Trace, geometric_mean

_STYLE = """
body{font:14px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h2{margin-top:2.5rem}table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #e4e7eb;white-space:nowrap}
th:first-child,td:first-child{text-align:left}.bad{color:#b42318}.good{color:#17663a}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#1b1f24}
@media(prefers-color-scheme:dark){body{background:#14171a;color:#dfe3e8}th,td{border-color:#2c3238}
svg text{fill:#dfe3e8}.bad{color:#ff9086}.good{color:#7bd69c}}
"""
_COLOURS = ("#2f6fde", "#d9822b", "#7a7f87", "#3f9c6b")


def html(runs: Sequence[Run]) -> str:
    """The page of one run, or of several in order of age: the last is shown, the earlier ones as history."""
    run = runs[-1]
    machine = ", ".join(f"{key} {value}" for key, value in run.machine.items())
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>zoi kernel lab</title><style>{_STYLE}</style><h1>Kernel lab</h1><p>{escape(machine)}</p>",
    ]
    for name, group in groupby(sorted(run.traces, key=lambda t: t.solution), key=lambda t: t.solution):
        traces = list(group)
        ratios = [r for t in traces if (r := t.ratio()) is not None]
        parts.append(f"<h2>{escape(name)}</h2>")
        if ratios:
            parts.append(
                f"<p>Against the fastest peer on each workload: {geometric_mean(ratios):.2f}x as the geometric mean, "
                f"{min(ratios):.2f}x at least, {max(ratios):.2f}x at most.</p>"
            )
        parts += [bars(traces), table(traces, runs[:-1])]
    return "\n".join(parts) + "</html>\n"


def table(traces: Sequence[Trace], earlier: Sequence[Run] = ()) -> str:
    """Every workload with its time, speed, ratio and check."""
    heads = ["workload", "µs", "µs, data in L2", "TFLOP/s", "GB/s", "peers, µs", "ratio", "check", "configuration"]
    heads += ["earlier, µs"] if earlier else []
    rows = ["<tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"]
    for t in traces:
        ratio = t.ratio()
        mark = "" if ratio is None else " class=good" if ratio >= 1 else " class=bad"
        peers = ", ".join(f"{name} {times['cold']:.1f}" for name, times in t.peers.items())
        passed = t.check["passed"]
        cells = [
            f"<td>{escape(t.name)}</td>",
            f"<td>{t.us['cold']:.1f}</td><td>{t.us['warm']:.1f}</td>",
            f"<td>{t.tflops:.0f}</td><td>{t.gbs:.0f}</td><td>{escape(peers)}</td>",
            f"<td{mark}>{f'{ratio:.2f}x' if ratio is not None else ''}</td>",
            f"<td>{t.check['relative']:.1e}</td>" if passed else "<td class=bad>wrong</td>",
            f"<td>{escape(' '.join(f'{k}={v}' for k, v in t.config.items()))}</td>",
        ]
        if earlier:
            found = [
                f"{old.us['cold']:.1f}"
                for run in earlier
                for old in run.traces
                if (old.solution, old.name) == (t.solution, t.name)
            ]
            cells.append(f"<td>{', '.join(found)}</td>")
        rows.append("<tr>" + "".join(cells) + "</tr>")
    return f"<table>{''.join(rows)}</table>"


def bars(traces: Sequence[Trace]) -> str:
    """Speed of each workload beside its peers': TFLOP/s where arithmetic counts, GB/s where bytes do."""
    heavy = sum(t.flops / t.bytes > 100 for t in traces) * 2 > len(traces)
    unit = "TFLOP/s" if heavy else "GB/s"
    names = list(dict.fromkeys(name for t in traces for name in t.peers))
    groups = []
    for t in traces:
        work = t.flops / 1e6 if heavy else t.bytes / 1e3
        groups.append((t.name, [("zoi", work / t.us["cold"]), *((n, work / t.peers[n]["cold"]) for n in t.peers)]))
    top = max((value for _, values in groups for _, value in values), default=1.0)
    y, left, width = 24, 430, 1100
    lines = []
    for at, name in enumerate(["zoi", *names]):
        lines.append(f"<rect x='{left + at * 110}' y='4' width='12' height='12' fill='{_COLOURS[at % 4]}'/>")
        lines.append(f"<text x='{left + 18 + at * 110}' y='14'>{escape(name)}</text>")
    lines.append(f"<text x='{width - 60}' y='14'>{unit}</text>")
    for label, values in groups:
        middle = y + 7 * len(values) + 4
        lines.append(f"<text x='{left - 8}' y='{middle}' text-anchor='end'>{escape(label)}</text>")
        for name, value in values:
            colour = _COLOURS[["zoi", *names].index(name) % 4]
            length = (width - left - 60) * value / top
            lines.append(f"<rect x='{left}' y='{y}' width='{length:.1f}' height='12' fill='{colour}'/>")
            lines.append(f"<text x='{left + length + 5:.1f}' y='{y + 10}'>{value:.0f}</text>")
            y += 14
        y += 8
    return f"<svg viewBox='0 0 {width} {y}' role='img' aria-label='{unit} by workload'>{''.join(lines)}</svg>"
