"""Every model of the suite agrees with ONNX Runtime, on the best architecture and on lesser ones."""

import functools
import os

import numpy as np
import pytest

import zoi
from benchmarks.suite import CASES
from zoi import _native
from zoi.bench import agreement, peers
from zoi.bench.inputs import model_inputs

SMALL_MMAC = 20
CHUNKS = 100
ARCHS = _native.archs()


def runs():
    """(case, shapes, arch): every case on the best; on AVX2 too; small ones on generic as well."""
    for case in CASES:
        for index, shapes in enumerate((case.shapes, *case.other_shapes)):
            archs = [arch for arch in ARCHS if arch != "generic" or case.mmac < SMALL_MMAC]
            for arch in archs[: 1 if index else None]:
                yield pytest.param(case, shapes, arch, id=f"{case.name}-{index}-{arch}")


@functools.lru_cache(maxsize=1)
def ort(name):
    """ONNX Runtime with the case's model; the tests of one model come after each other."""
    case = next(case for case in CASES if case.name == name)
    return peers.make("ort", case.path(), case.shapes, case.fix, [max(os.sched_getaffinity(0))])


@pytest.mark.parametrize(("case", "shapes", "arch"), list(runs()))
def test_agrees_with_onnxruntime(case, shapes, arch):
    plan = zoi.compile(case.path(), shapes=shapes, fix=case.fix, arch=arch)
    plan.native.validate()
    session = zoi.Session(plan)
    specs = model_inputs(case.path(), shapes, case.fix)
    rng = np.random.default_rng(7)
    for _ in range(2):
        feeds = case.feeds(specs, rng)
        result = agreement.compare(session(feeds), ort(case.name).outputs(feeds))
        assert result.ok, result


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("case", [c for c in CASES if c.state], ids=lambda c: c.name)
def test_a_carried_state_stays_in_agreement(case, arch):
    """A hundred chunks: zoi keeps the state in its arena, ONNX Runtime is handed its own back."""
    session = zoi.Session(zoi.compile(case.path(), shapes=case.shapes, fix=case.fix, state=case.state, arch=arch))
    specs = model_inputs(case.path(), case.shapes, case.fix)
    rng = np.random.default_rng(3)
    held = {
        into: np.zeros(spec.shape, spec.dtype) for spec in specs for into in [spec.name] if into in case.state.values()
    }
    for _ in range(CHUNKS):
        fresh = {n: a for n, a in case.feeds(specs, rng).items() if n not in held}
        expected = ort(case.name).outputs({**fresh, **held})
        result = agreement.compare(session(fresh), expected)
        assert result.ok, result
        held = {into: expected[output] for output, into in case.state.items()}
    session.reset()
    assert all((session.inputs[name] == 0).all() for name in held)
