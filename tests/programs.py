"""Small programs, made without ONNX, for the tests of the C++ side."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from zoi import _native

ADD = [1, 0, 1, 0]  # one pointwise instruction: x0 + x1


def operands(family: str, **refs: tuple[int, int]) -> list[tuple[int, int] | None]:
    """The operands of a step by name, the others missing."""
    declared = next(f for f in _native.families() if f["name"] == family)["operands"]
    assert set(refs) <= {o["name"] for o in declared}
    return [refs.get(o["name"]) for o in declared]


def gemm(p: _native.Program, name: str, a: int, b: int, c: int, mkn: Sequence[int], **more: int) -> None:
    """Appends c = a b, row-major and dense."""
    m, k, n = mkn
    problem = {"m": m, "n": n, "k": k, "a_row": k, "c_row": n, "r_row": n, **more}
    p.step(name, "gemm", problem, operands("gemm", a=(a, 0), b=(b, 0), c=(c, 0)))


def add(p: _native.Program, name: str, a: int, b: int, y: int, count: int) -> None:
    """Appends y = a + b over `count` floats."""
    problem = {"ndim": 1, "shape": [count], "inputs": 2, "in_stride": [1] + [0] * 5 + [1], "out_stride": [1],
               "length": 1, "code": ADD}  # fmt: skip
    p.step(name, "pointwise", problem, [(a, 0), (b, 0), *[None] * 6, (y, 0)])


def gather(p: _native.Program, name: str, x: int, index: int, y: int, axis: int, inner: int, indices: int) -> None:
    """Appends y[i] = x[index[i]] for rows of `inner` floats and int64 indices."""
    problem = {"elem": 4, "outer": 1, "axis": axis, "inner": inner, "indices": indices, "index_dtype": 10,
               "x_outer": axis * inner, "x_axis": inner, "y_outer": indices * inner, "y_axis": inner}  # fmt: skip
    p.step(name, "gather", problem, operands("gather", x=(x, 0), index=(index, 0), y=(y, 0)))


def mlp(sizes: Sequence[int] = (16, 64, 64, 8), rows: int = 1, seed: int = 0) -> _native.Program:
    """Relu(x w) for each pair of sizes: input x, output y."""
    rng = np.random.default_rng(seed)
    p = _native.Program("mlp")
    here = p.buffer(rows * sizes[0] * 4, "x")
    p.input("x", "float32", (rows, sizes[0]), here)
    for i, (k, n) in enumerate(pairwise(sizes)):
        w = p.constant(rng.standard_normal((k, n)).astype(np.float32) / np.float32(k**0.5), f"w{i}")
        there = p.buffer(rows * n * 4, f"h{i}")
        gemm(p, f"dense{i}", here, w, there, (rows, k, n), act=1)
        here = there
    p.output("y", "float32", (rows, sizes[-1]), here)
    return p


TABLE = np.arange(12, dtype=np.float32).reshape(4, 3) - 5


def mixed() -> _native.Program:
    """Packed and plain weights, run-time indices and a state.

    rows = TABLE[index]; y = x TABLE; total_out = total + y, which is the next run's total.
    """
    p = _native.Program("mixed")
    x, index = p.buffer(2 * 4 * 4, "x"), p.buffer(3 * 8, "index")
    y, rows = p.buffer(2 * 3 * 4, "y"), p.buffer(3 * 3 * 4, "rows")
    total, total_out = p.buffer(2 * 3 * 4, "total"), p.buffer(2 * 3 * 4, "total_out")
    packed, plain = p.constant(TABLE.copy(), "packed"), p.constant(TABLE.copy(), "plain")
    p.input("x", "float32", (2, 4), x)
    p.input("index", "int64", (3,), index)
    p.input("total", "float32", (2, 3), total)
    p.output("y", "float32", (2, 3), y)
    p.output("rows", "float32", (3, 3), rows)
    p.output("total_out", "float32", (2, 3), total_out)
    p.state("total", "total_out")
    gather(p, "rows", plain, index, rows, axis=4, inner=3, indices=3)
    gemm(p, "dense", x, packed, y, (2, 4, 3))
    add(p, "sum", y, total, total_out, 6)
    return p
