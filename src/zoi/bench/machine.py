"""The machine and the versions that a figure belongs to."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any


def describe(packages: Iterable[str] = ("numpy", "onnxruntime", "openvino")) -> dict[str, Any]:
    """CPU, caches, kernel, clock governor and versions, as a JSON object."""
    info = cpu_info()
    return {
        "cpu": info.get("model name", platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "isa": [
            f for f in ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16") if f in info.get("flags", "").split()
        ],
        "caches": caches(),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unknown",
        "virtual": "hypervisor" in info.get("flags", "").split(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version for name in packages if (version := _version(name))},
    }


def cpu_info(root: Path = Path("/")) -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo."""
    pairs = (line.split(":", 1) for line in read(root / "proc/cpuinfo").split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def caches() -> dict[str, str]:
    """Level and kind -> size of the first core's caches."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    found = {}
    for index in sorted(folder.glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(read(index / "type"), "")
        found[f"L{read(index / 'level')}{kind}"] = read(index / "size")
    return found


def read(path: str | Path) -> str:
    """A small file's text, or nothing where it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
