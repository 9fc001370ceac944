"""Benchmarks of the GPU kernels: one file of traces a family under benchmarks/results, named after the GPU."""

import re
import sys
from pathlib import Path

from zoi.device.cuda import unavailable
from zoi.lab import bench
from zoi.lab.solutions import solutions
from zoi.lab.suites import BENCH
from zoi.lab.trace import Run

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Times every solution of every family (or of those named) on every workload; wrong results fail."""
    reason = unavailable()
    if reason:
        print(f"GPU benchmarks skipped: {reason}")
        return 0
    from zoi.lab.machine import Gpu

    gpu = Gpu()
    slug = re.sub(r"[^a-z0-9]+", "_", gpu.device.name.lower())
    wrong = 0
    RESULTS.mkdir(exist_ok=True)
    for family in sys.argv[1:] or BENCH:
        traces = []
        for solution in solutions():
            for workload in BENCH[family]:
                if workload.definition != solution.definition:
                    continue
                if solution.exact_arch and gpu.machine.capability != solution.arch:
                    continue
                trace = bench.bench(gpu, solution, workload, solution.configs(workload, gpu.machine)[:3])
                if trace:
                    traces.append(trace)
                    wrong += not trace.check["passed"]
                    print(bench.line(trace), flush=True)
        Run(gpu.facts(), traces).save(RESULTS / f"gpu_{family}_{slug}.json")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
