"""Runs the tests of the C++ side on a `_native` with sanitizers: sanitized.py BUILD_FOLDER [PYTEST ARGUMENTS]."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# An editable installation would bring its own `_native`.
START = """
import sys
sys.meta_path = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
TESTS = ["tests/kernels", "tests/plan", "tests/run/test_lanes.py"]


def main(build: Path, arguments: list[str]) -> int:
    """Python itself is not built with the sanitizers, so their run-time library must be loaded before it."""
    native = next(build.glob("_native*.so"))
    library = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    package = build / "package" / "zoi"
    package.mkdir(parents=True, exist_ok=True)
    for entry in [*(ROOT / "src" / "zoi").iterdir(), native]:
        link = package / entry.name
        if not entry.name.endswith(".so") or entry == native:
            link.unlink(missing_ok=True)
            link.symlink_to(entry.resolve())
    env = {
        **os.environ,
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # of Python's own
        "PYTHONPATH": str(package.parent),
    }
    command = [sys.executable, "-c", START, "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(command, env=env, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
