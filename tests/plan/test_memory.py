"""The memory layout: buffers that live at the same time never share a byte, and every byte is known beforehand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import add, gemm, mixed, mlp
from zoi import _native

WORDS = 4


@st.composite
def programs(draw):
    """A random graph of element-wise sums and small products, and a NumPy function that computes its outputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    p = _native.Program("random")
    sizes = st.sampled_from([1, 15, 16, 17, 40, 100])
    nodes = []  # (buffer, size, how it is computed)
    for i in range(draw(st.integers(1, 3))):
        size = draw(sizes)
        buffer = p.buffer(size * WORDS, f"x{i}")
        p.input(f"x{i}", "float32", (size,), buffer)
        nodes.append((buffer, size, ("input", f"x{i}")))
    inputs = len(nodes)
    for i in range(draw(st.integers(1, 20))):
        a = draw(st.integers(0, len(nodes) - 1))
        alike = [j for j, node in enumerate(nodes) if node[1] == nodes[a][1]]
        if draw(st.booleans()):
            b, size = draw(st.sampled_from(alike)), nodes[a][1]
            y = p.buffer(size * WORDS, f"h{i}")
            add(p, f"add{i}", nodes[a][0], nodes[b][0], y, size)
            nodes.append((y, size, ("add", a, b)))
        else:
            size = draw(sizes)
            w = rng.standard_normal((nodes[a][1], size)).astype(np.float32) / np.float32(nodes[a][1] ** 0.5)
            y = p.buffer(size * WORDS, f"h{i}")
            gemm(p, f"gemm{i}", nodes[a][0], p.constant(w, f"w{i}"), y, (1, nodes[a][1], size))
            nodes.append((y, size, ("gemm", a, w)))
    # The last value is always wanted; others may be as well, and the rest may die early or never be read.
    wanted = {len(nodes) - 1} | draw(st.sets(st.integers(inputs, len(nodes) - 1), max_size=3))
    for j in sorted(wanted):
        p.output(f"y{j}", "float32", (nodes[j][1],), nodes[j][0])

    def reference(feeds):
        values = []
        for _, _, (kind, *how) in nodes:
            if kind == "input":
                values.append(feeds[how[0]].astype(np.float64))
            elif kind == "add":
                values.append(values[how[0]] + values[how[1]])
            else:
                values.append(values[how[0]] @ how[1].astype(np.float64))
        return {f"y{j}": values[j] for j in wanted}

    return p, {f"x{i}": nodes[i][1] for i in range(inputs)}, {nodes[j][0] for j in wanted}, reference


def lifetimes(plan, kept):
    """Buffer -> (offset, bytes, first, last step), worked out anew from the plan's printed steps."""
    spans = {}
    for s, step in enumerate(plan.steps):
        for operand in step["operands"]:
            if operand["place"] == "arena":
                offset, size, first, _ = spans.get(operand["buffer"], (operand["offset"], operand["bytes"], s, s))
                spans[operand["buffer"]] = offset, size, first, s
    return {b: (o, n, -1, len(plan.steps)) if b in kept else (o, n, f, t) for b, (o, n, f, t) in spans.items()}


@settings(max_examples=150, deadline=None)
@given(programs())
def test_live_buffers_never_overlap(drawn):
    program, sizes, outputs, _ = drawn
    plan = _native.Plan(program)
    plan.validate()
    spans = lifetimes(plan, outputs | set(range(len(sizes))))
    arena = plan.memory()["arena"]
    for a, (offset, size, first, last) in spans.items():
        assert offset % 64 == 0 and offset >= 0 and offset + size <= arena
        for b, (other, length, begin, end) in spans.items():
            if a >= b or offset + size <= other or other + length <= offset:
                continue
            # In place: one ends in the very step that begins the other, at the same address.
            handed_over = offset == other and size == length and (last == begin or end == first)
            assert last < begin or end < first or handed_over, (a, b)


@settings(max_examples=50, deadline=None)
@given(programs())
def test_sharing_memory_changes_no_result(drawn):
    program, sizes, _, reference = drawn
    rng = np.random.default_rng(1)
    feeds = {name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    session = _native.Session(_native.Plan(program))
    for name, value in feeds.items():
        session.input(name)[...] = value
    for _ in range(2):
        session.run()
        for name, wanted in reference(feeds).items():
            scale = np.abs(wanted).max() + 1
            assert np.abs(session.output(name) - wanted).max() <= 1e-4 * scale
        for name, value in feeds.items():
            assert np.array_equal(session.input(name), value), "an input keeps its value"


@settings(max_examples=50, deadline=None)
@given(programs())
def test_the_arena_is_no_smaller_than_its_bound_and_what_is_stated_is_allocated(drawn):
    plan = _native.Plan(drawn[0])
    memory = plan.memory()
    assert memory["lower_bound"] <= memory["arena"]
    assert memory["total"] == sum(memory[part] for part in ("weights", "arena", "scratch", "bookkeeping"))
    assert _native.Session(plan).memory == memory


@pytest.mark.parametrize("program", [mlp, mixed])
def test_memory_grows_with_lanes_by_their_scratch_alone(program):
    plan = _native.Plan(program())
    one, three = plan.memory(1), plan.memory(3)
    assert three.pop("scratch") == 3 * one.pop("scratch")
    assert three.pop("total") - one.pop("total") == 2 * plan.memory(1)["scratch"]
    assert one == three


def test_a_chain_takes_over_the_memory_of_what_it_reads():
    p = _native.Program("chain")
    x = p.buffer(4096)
    p.input("x", "float32", (1024,), x)
    here = x
    for i in range(6):
        there = p.buffer(4096)
        add(p, f"add{i}", here, x, there, 1024)
        here = there
    p.output("y", "float32", (1024,), here)
    assert _native.Plan(p).memory()["arena"] == 3 * 4096, "x, y, and one for all that lies between"
