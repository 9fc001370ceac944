"""The C ABI: a C program that knows only zoi.h and libzoi gets what Python gets."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.programs import mixed, mlp
from zoi import _native
from zoi.native_files import prefix

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "c"
LIB = prefix() / "lib"
CC = shutil.which("cc")

pytestmark = [
    pytest.mark.skipif(CC is None, reason="no C compiler"),
    pytest.mark.skipif(not (LIB / "libzoi.so").exists(), reason="libzoi is not installed beside _native"),
]


def build(source, to, *flags):
    """Compiles a C program against the installed library, as strictly as C99 allows."""
    command = [CC, "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-O1", f"-I{prefix() / 'include'}",
               str(source), "-o", str(to), *flags, f"-L{LIB}", f"-Wl,-rpath,{LIB}", "-lzoi"]  # fmt: skip
    subprocess.run(command, check=True)
    return to


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "m.zoi"
    _native.Plan(mlp(rows=3)).save(str(path))
    session = _native.Session(_native.Plan.load(str(path)))
    x = session.input("x")
    x[...] = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    session.run()
    return path, session.output("y").copy()


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)


def assert_prints(program, model):
    path, wanted = model
    result = run(program, path)
    assert result.returncode == 0, result.stderr
    name, *values = result.stdout.split()
    assert name == "y"
    assert np.array_equal(np.array(values, np.float32), wanted.ravel())


def test_the_example_prints_what_python_computes(tmp_path, model):
    assert_prints(build(EXAMPLE / "main.c", tmp_path / "main"), model)


def test_the_example_says_what_is_wrong(tmp_path):
    result = run(build(EXAMPLE / "main.c", tmp_path / "main"), tmp_path / "none.zoi")
    assert result.returncode == 1
    assert "none.zoi" in result.stderr and "No such file" in result.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_the_cmake_package_is_found(tmp_path, model):
    configure = ["cmake", "-S", EXAMPLE, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix()}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", tmp_path], check=True, stdout=subprocess.DEVNULL)
    assert_prints(tmp_path / "main", model)


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_the_library_shows_only_what_the_header_declares():
    header = (prefix() / "include" / "zoi.h").read_text()
    listing = subprocess.run(["nm", "-D", "--defined-only", LIB / "libzoi.so"], capture_output=True, text=True)
    names = {line.split()[-1] for line in listing.stdout.splitlines()}
    assert names == set(re.findall(r"^ZOI_API .*?\b(zoi_\w+)\(", header, re.M))


CALLS = r"""
#include <stdio.h>
#include <string.h>
#include <zoi.h>
#define CHECK(x) if (!(x)) { fprintf(stderr, "line %d: %s; %s\n", __LINE__, #x, zoi_last_error()); return 1; }
int main(int argc, char** argv) {
  CHECK(argc == 2 && strcmp(zoi_last_error(), "") == 0 && strlen(zoi_version()) > 4);
  CHECK(!zoi_plan_load("/none", NULL) && strstr(zoi_last_error(), "/none"));
  CHECK(!zoi_plan_load(argv[1], "z80") && strstr(zoi_last_error(), "z80"));
  zoi_plan* plan = zoi_plan_load(argv[1], "generic");
  CHECK(plan && strcmp(zoi_plan_name(plan), "mixed") == 0);
  CHECK(zoi_plan_input_count(plan) == 3 && zoi_plan_output_count(plan) == 3);
  zoi_tensor t;
  CHECK(zoi_plan_input(plan, 1, &t) == 0 && strcmp(t.name, "index") == 0 && t.dtype == ZOI_INT64);
  CHECK(t.ndim == 1 && t.shape[0] == 3 && t.bytes == 24);
  CHECK(zoi_plan_input(plan, 3, &t) == -1 && zoi_plan_output(plan, 3, &t) == -1);
  CHECK(zoi_plan_find_input(plan, "total") == 2 && zoi_plan_find_output(plan, "total_out") == 2);
  CHECK(zoi_plan_find_input(plan, "y") == -1);
  zoi_options options;
  memset(&options, 0, sizeof options);
  zoi_session* s = zoi_session_create(plan, &options);
  CHECK(s && zoi_session_lanes(s) == 1);
  zoi_memory stated = zoi_plan_memory(plan, 1), made = zoi_session_memory(s);
  CHECK(memcmp(&stated, &made, sizeof made) == 0 && made.total > 0);
  zoi_session* other = zoi_session_create(plan, NULL);
  zoi_plan_free(plan);
  CHECK(!zoi_input_data(s, 3) && !zoi_output_data(s, 3));
  float* x = zoi_input_data(s, 0);
  int64_t* index = zoi_input_data(s, 1);
  memset(x, 0, 32);
  x[0] = 1;
  memset(index, 0, 24);
  CHECK(zoi_session_run(s) == 0 && zoi_session_run(s) == 0);
  CHECK(((const float*)zoi_output_data(s, 0))[2] == -3 && ((const float*)zoi_output_data(s, 2))[2] == -6);
  zoi_session_reset(s);
  CHECK(zoi_session_run(s) == 0 && ((const float*)zoi_output_data(s, 2))[2] == -3);
  index[1] = 4;
  CHECK(zoi_session_run(s) == -1 && strstr(zoi_last_error(), "out of range"));
  index[1] = 0;
  CHECK(zoi_session_run(s) == 0);
  zoi_session_free(s);
  CHECK(zoi_session_run(other) == 0);
  zoi_session_free(other);
  zoi_session_free(NULL);
  zoi_plan_free(NULL);
  return 0;
}
"""


def test_every_call(tmp_path):
    _native.Plan(mixed()).save(str(tmp_path / "mixed.zoi"))
    (tmp_path / "calls.c").write_text(CALLS)
    result = run(build(tmp_path / "calls.c", tmp_path / "calls"), tmp_path / "mixed.zoi")
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_the_header_is_cxx_too(tmp_path):
    (tmp_path / "one.cc").write_text("#include <zoi.h>\nint main() { return zoi_version() == nullptr; }\n")
    command = ["c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix() / 'include'}", tmp_path / "one.cc"]
    subprocess.run(command, check=True)
