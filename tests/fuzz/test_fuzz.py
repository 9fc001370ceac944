"""A short run of the fuzzer; `make fuzz` is the long one."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fuzz.corpus import write
from zoi import _native

FUZZ = Path(__file__).resolve().parents[2] / "build" / "sanitize" / "cmake" / "zoi_fuzz"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write(tmp_path_factory.mktemp("corpus"))


def test_the_corpus_uses_every_family(corpus):
    used = {step["family"] for path in corpus for step in _native.Plan.load(str(path)).steps}
    assert used == {family["name"] for family in _native.families()}


@pytest.mark.skipif(not FUZZ.exists(), reason="no build with sanitizers: `make fuzz` makes it, where the compiler can")
def test_no_file_does_harm(corpus):
    command = [FUZZ, "3000", "0", *corpus]
    env = {**os.environ, "LD_PRELOAD": ""}
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)
    assert result.returncode == 0, result.stderr[-4000:]
    refused, ran = re.search(r": (\d+) refused, (\d+) ran", result.stdout).groups()
    assert int(refused) > 500 and int(ran) > 100, "mutations must reach both ends"
