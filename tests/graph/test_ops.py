"""The numbers in Python are those in the headers: they are written into .zoi files."""

import re
from pathlib import Path

import pytest

from zoi.graph.ops import Act, Op, Reduction

KERNELS = Path(__file__).resolve().parents[2] / "src" / "zoi" / "kernels"
LISTS = {
    "Activation": (Act, "kAct", "activation.h"),
    "PointwiseOp": (Op, "kPw", "pointwise/pointwise.h"),
    "ReduceOp": (Reduction, "kReduce", "reduce/reduce.h"),
}


def names_in_header(name, prefix, path):
    """Names of an enum without their prefix, in order: kPwLessEqual is LESS_EQUAL."""
    text = re.sub(r"//[^\n]*", "", (KERNELS / path).read_text())
    body = re.search(rf"enum {name} : int64_t \{{(.*?)\}}", text, re.S).group(1)
    entries = [entry.strip() for entry in body.split(",") if entry.strip()]
    assert re.fullmatch(rf"{prefix}\w+ = 0", entries[0]) and not any("=" in entry for entry in entries[1:])
    words = [entry.split()[0].removeprefix(prefix) for entry in entries]
    assert words.pop() == "Count"
    return [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).upper() for word in words]


@pytest.mark.parametrize("name", LISTS)
def test_python_and_cpp_number_alike(name):
    numbers, prefix, path = LISTS[name]
    assert [member.name for member in numbers] == names_in_header(name, prefix, path)
    assert [int(member) for member in numbers] == list(range(len(numbers)))
