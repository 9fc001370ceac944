"""What docs/add_a_kernel.md promises: a new variant of a kernel is one new file and one line in its family's header."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parent.parent / "src" / "zoi" / "kernels"
VARIANT = """
#include "fill.h"

namespace zoi {

static void run(const void*, Lane) {}
static bool supports(const void*) { return true; }
static double cost(const void*) { return 1.0; }

extern const Kernel fill_dummy = {
    .name = "fill_dummy", .arch = Arch::generic, .run = run, .supports = supports, .slices = nullptr,
    .scratch = nullptr, .packed_bytes = nullptr, .pack = nullptr, .cost = cost, .exact = false,
};

}  // namespace zoi
"""
LIST = """
#include <cstdio>

#include "registry.h"

int main() {
  for (const zoi::Family* family : zoi::families())
    if (family)
      for (long i = 0; i < family->kernel_count; ++i)
        std::printf("%s %s %d\\n", family->name, family->kernels[i].name, family->kernels[i].kernel != nullptr);
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler here")
def test_a_variant_is_one_file_and_one_line(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    shutil.copytree(SOURCES, kernels, ignore=shutil.ignore_patterns("*.py", "*.cu*"))
    header = kernels / "fill" / "fill.h"
    text = header.read_text()
    assert text.count("K(fill_generic)") == 1
    header.write_text(text.replace("K(fill_generic)", "K(fill_dummy) K(fill_generic)"))
    (kernels / "fill" / "dummy.cc").write_text(VARIANT)
    (kernels / "list.cc").write_text(LIST)

    parts = ["list.cc", "registry.cc", "fill/family.cc", "fill/generic.cc", "fill/dummy.cc"]
    program = tmp_path / "list"
    subprocess.run(["c++", "-std=c++20", "-O1", *parts, "-o", program], cwd=kernels, check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert "fill fill_dummy 1" in lines and "fill fill_generic 1" in lines
    assert "fill fill_avx2 0" in lines, "a variant outside the build stays listed"
