"""A histogram of latencies as a picture: one filled step a contender, on a logarithmic axis of time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

COLOURS = {"zoi": "#d1495b", "ort": "#2e4057", "openvino": "#00798c"}
BINS = 120


def histogram(
    series: Mapping[str, npt.NDArray[Any]],
    path: str | os.PathLike[str],
    title: str,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Writes a PNG of nanosecond samples.

    Args:
        series: Contender -> nanoseconds of every run.
        path: The picture's file.
        title: What was run, and where.
        labels: Contender -> its name in the legend.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    micros = {name: np.asarray(samples) / 1e3 for name, samples in series.items()}
    low = min(float(np.min(m)) for m in micros.values())
    high = max(float(np.percentile(m, 99.9)) for m in micros.values())
    edges = np.geomspace(low * 0.97, max(high, low) * 1.03, BINS)
    figure, axes = plt.subplots(figsize=(9, 4.5), dpi=130)
    for name, values in micros.items():
        median = float(np.median(values))
        colour = COLOURS.get(name)
        label = (
            f"{(labels or {}).get(name, name)}: p50 {_short(median)}, p99 {_short(float(np.percentile(values, 99)))}"
        )
        counts, _ = np.histogram(values, edges)
        axes.stairs(counts / values.size * 100, edges, fill=True, alpha=0.55, color=colour, label=label)
        axes.axvline(median, color=colour, linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    axes.xaxis.set_minor_formatter(lambda value, _: _short(value) if high / low < 20 else "")
    axes.tick_params(axis="x", which="both", labelsize=8)
    axes.set_xlabel("time of one run (logarithmic)")
    axes.set_ylabel("runs, %")
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _short(micros: float) -> str:
    if micros >= 1000:
        return f"{micros / 1000:.3g} ms"
    return f"{micros:.3g} µs"
