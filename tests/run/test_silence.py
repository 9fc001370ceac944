"""What a run does not do: allocate, call the system, change the host's floating-point state, or use memory unstated."""

import platform
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.programs import mlp
from zoi import _native
from zoi.native_files import prefix

LIB = prefix() / "lib"
UNAVAILABLE = 77

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(not (LIB / "libzoi.so").exists(), reason="libzoi is not installed beside _native"),
    pytest.mark.skipif(
        platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64", reason="needs glibc, x86-64"
    ),
]


@pytest.fixture(scope="module")
def silence(tmp_path_factory):
    """Runs silence.c on a model of which two lanes share every step."""
    folder = tmp_path_factory.mktemp("silence")
    program, model = folder / "silence", folder / "m.zoi"
    source = Path(__file__).with_name("silence.c")
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-fno-builtin-malloc", "-rdynamic", source,
               f"-I{prefix() / 'include'}", "-o", program, f"-L{LIB}", f"-Wl,-rpath,{LIB}", "-lzoi"]  # fmt: skip
    subprocess.run(command, check=True)
    _native.Plan(mlp((512, 512, 512, 64))).save(str(model))

    def run(lanes, task=""):
        result = subprocess.run([program, model, str(lanes), task], capture_output=True, text=True, timeout=120)
        if result.returncode == UNAVAILABLE:
            pytest.skip("this machine lends fewer lanes, or allows no seccomp filter")
        return result

    return run


def test_the_test_sees_system_calls_and_allocations(silence):
    assert silence(1, "syscall").returncode == -signal.SIGSYS
    assert silence(1, "malloc").returncode == 5


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_run_makes_no_system_call_and_no_allocation(silence, lanes):
    result = silence(lanes)
    assert result.returncode != -signal.SIGSYS, "a system call was made"
    assert result.returncode == 0, {3: "failed", 4: "other bits", 5: "allocated"}.get(result.returncode, result.stderr)


@pytest.mark.parametrize("lanes", [1, 2])
def test_the_host_keeps_its_floating_point_state_and_does_not_share_it(silence, lanes):
    result = silence(lanes, "float")
    assert result.returncode == 0, result.stderr


def test_what_is_allocated_is_what_was_stated(silence):
    result = silence(1, "memory")
    assert result.returncode == 0, result.stderr
