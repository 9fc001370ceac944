"""Writes the README's table of latencies from `benchmarks/results/*.json`, between its two markers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- latencies: begin -->", "<!-- latencies: end -->"
PEERS = {"zoi": "zoi", "ort": "ONNX Runtime", "openvino": "OpenVINO"}


def table(result: dict[str, Any]) -> str:
    """One machine's figures as Markdown."""
    host = result["machine"]
    isa = "AVX-512" if "avx512f" in host["isa"] else "AVX2" if "avx2" in host["isa"] else "no AVX2"
    versions = host["versions"]
    lines = [
        f"One core of {host['cpu']} ({isa}{', virtual machine' if host['virtual'] else ''}), float32, batch 1, called "
        f"from Python; ONNX Runtime {versions.get('onnxruntime', '?')}, OpenVINO {versions.get('openvino', '?')}, "
        f"{result['date']}. Times are p50 / p99; memory is the growth of a fresh process over the imported library. "
        "The last column is the median of the best peer over zoi's.",
        "",
        "| model | MMAC | " + " | ".join(PEERS.values()) + " | memory, MB | best peer / zoi |",
        "|---|--:|" + "--:|" * (len(PEERS) + 2),
    ]
    lines += [_row(model) for model in result["models"]]
    return "\n".join(lines)


def _row(model: dict[str, Any]) -> str:
    results = {r["name"]: r for r in model["results"]}
    cells = [_times(results.get(peer)) for peer in PEERS]
    memory = " / ".join(_megabytes(results.get(peer)) for peer in PEERS)
    ratios = [ratio for peer, ratio in model["ratio_of_medians"].items() if peer in PEERS]
    best = f"{min(ratios):.2f}x" if ratios else ""
    size = f"{model['mmac']:g}" if model["mmac"] else ""
    return f"| {model['name']} | {size} | {' | '.join(cells)} | {memory} | {best} |"


def _times(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    if "failure" in result:
        return "fails"
    p50, p99 = result["us"]["p50"], result["us"]["p99"]
    if p50 >= 1000:
        return f"{p50 / 1000:.3g} / {p99 / 1000:.3g} ms"
    return f"{p50:.3g} / {p99:.3g} µs"


def _megabytes(result: dict[str, Any] | None) -> str:
    size = (result or {}).get("memory_bytes")
    return "-" if size is None else f"{size / 1e6:.1f}"


def main() -> None:
    """Replaces what stands between the markers."""
    tables = [table(json.loads(path.read_text())) for path in sorted((HERE / "results").glob("cpu-*.json"))]
    text = README.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{README.name} lacks the markers {BEGIN} and {END}")
    README.write_text(f"{before}{BEGIN}\n" + "\n\n".join(tables) + f"\n{END}{after}")


if __name__ == "__main__":
    main()
