"""The layout of the arena, over random programs: nothing alive is overwritten, and no byte is unstated."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import add
from zoi import _native


@st.composite
def programs(draw):
    """Sums of random earlier values, of which some are outputs: (sizes, steps as (a, b), outputs)."""
    sizes = draw(st.lists(st.integers(1, 200), min_size=1, max_size=3))
    inputs = len(sizes)
    steps = []
    for _ in range(draw(st.integers(1, 25))):
        a, b = (draw(st.integers(0, len(sizes) - 1)) for _ in range(2))
        steps.append((a, b))
        sizes.append(min(sizes[a], sizes[b]))
    values = range(inputs, len(sizes))
    outputs = draw(st.sets(st.sampled_from(values), min_size=1, max_size=4))
    return sizes, steps, sorted(outputs | {len(sizes) - 1})


def build(sizes, steps, outputs):
    p = _native.Program("random")
    buffers = [p.buffer(4 * size, f"b{i}") for i, size in enumerate(sizes)]
    inputs = len(sizes) - len(steps)
    for i in range(inputs):
        p.input(f"x{i}", "float32", (sizes[i],), buffers[i])
    for i in outputs:
        p.output(f"y{i}", "float32", (sizes[i],), buffers[i])
    for i, (a, b) in enumerate(steps):
        add(p, f"s{i}", buffers[a], buffers[b], buffers[inputs + i], sizes[inputs + i])
    return _native.Plan(p)


def places(plan, sizes, steps, outputs):
    """Buffer -> (offset, end, first step, last step), from what the plan says of its steps."""
    end = len(steps)
    inputs = len(sizes) - end
    found = {}
    for s, step in enumerate(plan.steps):
        for operand in step["operands"]:
            offset, first, _ = found.get(operand["buffer"], (operand["offset"], s, s))
            assert offset == operand["offset"], "a buffer lies in one place"
            found[operand["buffer"]] = (offset, first, s)
    for i in [*range(inputs), *outputs]:
        if i in found:
            found[i] = (found[i][0], -1, end)
    return {i: (offset, offset + 4 * sizes[i], first, last) for i, (offset, first, last) in found.items()}


@settings(max_examples=150, deadline=None)
@given(programs())
def test_no_two_live_buffers_share_a_byte(random):
    plan = build(*random)
    plan.validate()
    memory = plan.memory()
    where = places(plan, *random)
    for i, (low, high, first, last) in where.items():
        assert low % 64 == 0 and low >= 0 and high <= memory["arena"]
        for j, (other_low, other_high, other_first, other_last) in where.items():
            if i == j or high <= other_low or other_high <= low:
                continue
            # In place: one ends where the other begins, at the same address.
            in_place = (last == other_first or other_last == first) and low == other_low
            assert last < other_first or other_last < first or in_place, f"buffers {i} and {j} overlap"
    assert memory["lower_bound"] <= memory["arena"]


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(0, 2**31))
def test_every_output_is_right_in_every_run(random, seed):
    sizes, steps, outputs = random
    session = _native.Session(build(*random))
    rng = np.random.default_rng(seed)
    inputs = len(sizes) - len(steps)
    for _ in range(2):
        values = [rng.integers(-8, 8, size).astype(np.float32) for size in sizes[:inputs]]
        for i, value in enumerate(values):
            session.input(f"x{i}")[...] = value
        for a, b in steps:
            size = min(len(values[a]), len(values[b]))
            values.append(values[a][:size] + values[b][:size])
        session.run()
        for i in range(inputs):
            assert np.array_equal(session.input(f"x{i}"), values[i]), "inputs keep their values"
        for i in outputs:
            assert np.array_equal(session.output(f"y{i}"), values[i])


def test_a_chain_runs_in_place():
    sizes = [64] * 10
    plan = build(sizes, [(i, i) for i in range(9)], [9])
    assert plan.memory()["arena"] <= 4 * 64 * 4
    chain = build([64] * 11, [(i, i) for i in range(10)], [10])
    assert chain.memory()["arena"] == plan.memory()["arena"], "a longer chain needs no more"


def test_the_statement_is_what_a_session_allocates():
    plan = build([1000, 500], [(0, 0)], [1])
    assert _native.Session(plan).memory == plan.memory()
    memory = plan.memory()
    assert memory["total"] == memory["weights"] + memory["arena"] + memory["scratch"] + memory["bookkeeping"]
