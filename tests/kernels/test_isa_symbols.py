"""Code built for one ISA cannot become the copy that the linker keeps for every processor, nor run before dispatch."""

import shutil
import subprocess
from pathlib import Path

import pytest

from zoi import _native

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = sorted((ROOT / "src" / "zoi" / "kernels").glob("*/x86_*.cc"))
NM = shutil.which("nm")

pytestmark = pytest.mark.skipif(NM is None, reason="no nm")


def object_of(source):
    """The newest object of `source` among the build folders in the tree."""
    name = f"{source.relative_to(ROOT)}.o"
    found = list(ROOT.glob(f"build/*/CMakeFiles/zoi_core.dir/{name}"))
    if not found:
        pytest.skip("no build folder below build/ holds this object")
    return max(found, key=lambda path: path.stat().st_mtime)


def symbols(path):
    """(type, name) of every symbol that the object defines."""
    listing = subprocess.run([NM, "-C", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return [tuple(line.split(maxsplit=2)[1:]) for line in listing.splitlines()]


@pytest.mark.parametrize("source", VARIANTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_only_records_and_the_namespace_of_the_isa_can_be_seen_from_outside(source):
    isa = source.stem.removeprefix("x86_")
    records = {f"zoi::{k['name']}" for k in _native.kernels() if k["arch"] == isa and k["family"] == source.parent.name}
    # Lower-case types are local to the object; "u", "v" and "w" are the shared and weak ones among them.
    shared = {name for kind, name in symbols(object_of(source)) if kind.isupper() or kind in "uvw"}
    assert records, "the build has no kernel of this file"
    assert records <= shared, "a record is missing from its object"
    outside = {name for name in shared - records if not name.startswith(f"zoi::{isa}::")}
    assert not outside


@pytest.mark.parametrize("source", VARIANTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_nothing_of_an_isa_runs_when_the_library_is_loaded(source):
    started = [
        name for _, name in symbols(object_of(source)) if "_GLOBAL__sub_I" in name or "global constructors" in name
    ]
    assert not started
