"""What on this machine costs latency, and how to mend it.

Every check reads files under a root folder, so that tests can lay out a machine of their own, and says so where a
file is missing (a container, a virtual machine, another kernel) rather than guessing.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoi.bench.machine import cpu_info, read

Status = Literal["ok", "warn", "unknown"]
LOAD_SECONDS = 0.25


@dataclass(frozen=True)
class Finding:
    """One thing looked at: what was found, whether that costs latency, and how to mend it."""

    name: str
    status: Status
    found: str
    mend: str = ""


@dataclass(frozen=True)
class Host:
    """Where a check looks: the root of the file system, and the cores this process may use."""

    root: Path = Path("/")
    allowed: frozenset[int] = frozenset()

    def read(self, path: str) -> str:
        """A small file's text, or nothing."""
        return read(self.root / path)


def examine(root: Path = Path("/"), allowed: Iterable[int] | None = None) -> list[Finding]:
    """Runs every check.

    Args:
        root: The file system to read.
        allowed: The cores this process may use; by default what the system says.
    """
    cores = frozenset(os.sched_getaffinity(0) if allowed is None else allowed)
    return [check(Host(root, cores)) for check in CHECKS]


def governor(host: Host) -> Finding:
    """The clock governor of every allowed core."""
    found = {host.read(f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor") for core in host.allowed} - {""}
    if not found:
        return Finding("clock governor", "unknown", "no cpufreq here: the host or the firmware decides")
    if found == {"performance"}:
        return Finding("clock governor", "ok", "performance")
    return Finding("clock governor", "warn", ", ".join(sorted(found)), "cpupower frequency-set -g performance")


def turbo(host: Host) -> Finding:
    """Whether the clock may rise, which makes runs quicker and less alike."""
    no_turbo = host.read("sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = host.read("sys/devices/system/cpu/cpufreq/boost")
    clock = cpu_info(host.root).get("cpu MHz", "")
    now = f", {float(clock):.0f} MHz now" if clock else ""
    if not no_turbo and not boost:
        return Finding("turbo", "unknown", f"cannot be read{now}")
    on = no_turbo == "0" or boost == "1"
    return Finding("turbo", "ok", f"{'on: quickest, but the clock moves with heat and load' if on else 'off'}{now}")


def smt(host: Host) -> Finding:
    """Whether an allowed core shares its units with another one."""
    pairs = set()
    for core in host.allowed:
        siblings = parse_cores(host.read(f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"))
        if len(siblings) > 1:
            pairs.add(",".join(map(str, sorted(siblings))))
    if pairs:
        return Finding(
            "SMT siblings",
            "warn",
            f"cores {'; '.join(sorted(pairs))} share execution units",
            "keep the sibling of a core that you pin to idle, or: echo off > /sys/devices/system/cpu/smt/control",
        )
    return Finding("SMT siblings", "ok", "no allowed core shares its units, as far as this system shows")


def quota(host: Host) -> Finding:
    """A CFS quota of this cgroup or one above it, which stops all threads once it is spent."""
    for group in _cgroups(host):
        limit = host.read(f"sys/fs/cgroup{group}/cpu.max").split()
        if not limit:
            us, period = (host.read(f"sys/fs/cgroup/cpu{group}/cpu.cfs_{k}_us") for k in ("quota", "period"))
            limit = ["max" if us.startswith("-") else us, period] if us and period else []
        if len(limit) == 2 and limit[0] != "max":
            share = int(limit[0]) / int(limit[1])
            return Finding(
                "cgroup quota",
                "warn",
                f"{share:g} cores in every {int(limit[1]) / 1000:g} ms: spinning lanes spend it, then everything waits",
                "lift it (docker: no --cpus; Kubernetes: no CPU limit), or confine with a cpuset instead",
            )
    return Finding("cgroup quota", "ok", "none")


def affinity(host: Host) -> Finding:
    """The cores that this process may use."""
    online = parse_cores(host.read("sys/devices/system/cpu/online")) or set(host.allowed)
    text = f"{len(host.allowed)} of {len(online)} cores: {format_cores(host.allowed)}"
    if len(host.allowed) < 2:
        return Finding("affinity", "warn", text, "allow a second core, so that other work need not share this one")
    return Finding("affinity", "ok", text)


def isolated(host: Host) -> Finding:
    """Cores that the scheduler leaves alone."""
    cores = parse_cores(host.read("sys/devices/system/cpu/isolated"))
    quiet = parse_cores(host.read("sys/devices/system/cpu/nohz_full").replace("(null)", ""))
    if cores & host.allowed:
        ticks = "" if quiet & cores else "; their timer tick still runs (nohz_full)"
        return Finding("isolated cores", "ok", f"{format_cores(cores)}{ticks}")
    last = max(host.allowed, default=0)
    return Finding(
        "isolated cores",
        "warn",
        "none: any task may be put on the core that you pin to",
        f"boot with isolcpus={last} nohz_full={last} rcu_nocbs={last}, then Session(cores=[{last}])",
    )


def huge_pages(host: Host) -> Finding:
    """Whether an arena can have huge pages, which spare misses of the address cache."""
    transparent = _selected(host.read("sys/kernel/mm/transparent_hugepage/enabled"))
    free = next((line.split()[1] for line in host.read("proc/meminfo").splitlines() if "HugePages_Free" in line), "0")
    text = f"transparent: {transparent or 'not here'}; reserved and free: {free}"
    if transparent in ("always", "madvise") or free != "0":
        return Finding("huge pages", "ok", text)
    return Finding("huge pages", "warn", text, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")


def locked_memory(host: Host) -> Finding:
    """How much memory this process may lock, so that it is never paged out."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        return Finding("locked memory", "ok", "no limit")
    text = f"at most {soft / (1 << 20):.3g} MiB: Session(lock=True) fails for a larger arena"
    if soft >= 64 << 20:
        return Finding("locked memory", "ok", text)
    return Finding("locked memory", "warn", text, "ulimit -l unlimited (LimitMEMLOCK=infinity in a systemd unit)")


def hypervisor(host: Host) -> Finding:
    """Whether a hypervisor can take the core away."""
    flags = cpu_info(host.root).get("flags", "").split()
    if not flags:
        return Finding("hypervisor", "unknown", "/proc/cpuinfo lists no flags")
    if "hypervisor" not in flags:
        return Finding("hypervisor", "ok", "none")
    ticks = host.read("proc/stat").splitlines()
    stolen = int(ticks[0].split()[8]) if ticks and len(ticks[0].split()) > 8 else 0
    text = f"a virtual machine; the host took {stolen / 100:.1f} s of processor time since it started"
    return Finding("hypervisor", "warn", text, "expect worse tails (p99.9); measure on the machine that will serve")


def load(host: Host) -> Finding:
    """How busy each core is, measured over a moment."""
    before = _busy(host)
    if not before:
        return Finding("load", "unknown", "/proc/stat cannot be read")
    time.sleep(LOAD_SECONDS)
    after = _busy(host)
    shares = {}
    for core, (busy, total) in after.items():
        was = before.get(core, (busy, total))
        shares[core] = (busy - was[0]) / max(1, total - was[1])
    loaded = {core: share for core, share in shares.items() if share > 0.1}
    if not loaded:
        return Finding("load", "ok", "all cores idle")
    text = ", ".join(f"core {core}: {share:.0%}" for core, share in sorted(loaded.items()))
    return Finding("load", "warn", text, "stop other work: it shares caches, memory bandwidth and the clock's budget")


def swap(host: Host) -> Finding:
    """Whether memory can be paged out to disk."""
    lines = [line.split() for line in host.read("proc/meminfo").splitlines()]
    used = {parts[0]: int(parts[1]) for parts in lines if len(parts) > 1}
    if used.get("SwapTotal:", 0):
        return Finding("swap", "warn", f"{used['SwapTotal:'] >> 10} MiB", "swapoff -a, or Session(lock=True)")
    return Finding("swap", "ok", "none")


CHECKS: tuple[Callable[[Host], Finding], ...] = (
    governor,
    turbo,
    smt,
    quota,
    affinity,
    isolated,
    huge_pages,
    locked_memory,
    swap,
    hypervisor,
    load,
)


def parse_cores(text: str) -> set[int]:
    """The kernel's list form: "0-2,5" is {0, 1, 2, 5}."""
    cores: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            cores |= set(range(int(first), int(last or first) + 1))
    return cores


def format_cores(cores: Iterable[int]) -> str:
    """{0, 1, 2, 5} as "0-2,5"."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _cgroups(host: Host) -> list[str]:
    """This process's cgroup folders, the innermost first, and the root."""
    paths = [""]
    for line in host.read("proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or "cpu" in controllers.split(","):
            parts = [part for part in path.split("/") if part and part != ".."]
            paths = ["/" + "/".join(parts[:depth]) for depth in range(len(parts), 0, -1)] + [""]
    return paths


def _selected(text: str) -> str:
    return text.partition("[")[2].partition("]")[0]


def _busy(host: Host) -> dict[int, tuple[int, int]]:
    """Core -> (busy, all) ticks."""
    found = {}
    for line in host.read("proc/stat").splitlines():
        name, *ticks = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            values = list(map(int, ticks[:8]))
            found[int(name[3:])] = (sum(values) - sum(values[3:5]), sum(values))
    return found
