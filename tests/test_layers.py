"""The layer rule: who may import or include whom. A stage knows the stages before it and nothing that comes after."""

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src" / "zoi"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# Folder -> folders of the house that it may import (Python). Modules in the root of the package may see all.
PYTHON = {
    "graph": {"errors"},
    "passes": {"graph", "errors", "_native"},
    "plan": {"_native", "errors"},
    "report": set(),
    "device": {"_cuda", "errors"},
    "kernels": {"device", "_cuda"},
    "lab": {"device", "kernels", "_cuda", "errors"},
    "bench": {"bench", "plan", "session", "errors", "report", ""},
}
# Folder -> folders that it may include (C++). Every family of kernels is a room of its own.
CPP = {
    "kernels": {"kernels"},
    "device": {"device", "kernels"},
    "plan": {"plan", "kernels", "device"},
    "run": {"run", "plan", "device", "kernels"},
}


def python_files():
    return [p for folder in PYTHON for p in sorted((SRC / folder).rglob("*.py"))]


def cpp_files():
    return [p for folder in CPP for p in sorted((SRC / folder).rglob("*")) if p.suffix in (".h", ".cc", ".cuh", ".inc")]


def imports(path):
    """What a module imports from zoi, by second name: `zoi.passes.lower` and `from zoi import passes` are passes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"zoi.{alias.name}" for alias in node.names] if node.module == "zoi" else [node.module]
        else:
            names = []
        yield from (f"{name}.".split(".")[1] for name in names if name.split(".")[0] == "zoi")


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(SRC)))
def test_python_imports_only_earlier_stages(path):
    folder = path.relative_to(SRC).parts[0]
    allowed = PYTHON[folder] | {folder}
    found = set(imports(path))
    assert found <= allowed, f"{path.relative_to(SRC)} imports {sorted(found - allowed)}; allowed: {sorted(allowed)}"


def includes(path):
    """The files of the house that a file includes, as parts below src/zoi."""
    for name in INCLUDE.findall(path.read_text()):
        for base in (path.parent, SRC, SRC.parent):
            file = (base / name).resolve()
            if file.is_file() and file.is_relative_to(SRC):
                yield file.relative_to(SRC).parts
                break


@pytest.mark.parametrize("path", cpp_files(), ids=lambda p: str(p.relative_to(SRC)))
def test_cpp_includes_only_earlier_stages(path):
    parts = path.relative_to(SRC).parts
    for target in includes(path):
        assert target[0] in CPP[parts[0]] or len(target) == 1, f"{'/'.join(parts)} includes {'/'.join(target)}"
        if parts[0] == target[0] == "kernels" and len(parts) > 2 and len(target) > 2:
            rooms = {parts[1], "simd"}
            assert target[1] in rooms, f"{'/'.join(parts)} includes {'/'.join(target)} of another room"


def test_variants_see_no_other_isa():
    for path in cpp_files():
        text = path.read_text()
        if path.name == "x86_avx2.cc":
            assert "avx512" not in text, path
        if path.name == "generic.cc":
            assert "simd/avx" not in text and "immintrin" not in text, path


def test_nothing_imports_bench_but_the_command_line():
    for path in sorted(SRC.rglob("*.py")):
        if path.relative_to(SRC).parts[0] not in ("bench", "cli.py", "doctor.py"):
            assert "bench" not in set(imports(path)), path
