"""ONNX's own tests of every operator and opset version: each agrees, or is refused with an error of zoi's own."""

import warnings
from collections import Counter

import numpy as np
import pytest

import zoi

# Fewer than this would mean that something supported no longer is.
SUPPORTED = 700
# Half a pixel of these differs by design: with scales and align_corners, zoi and ONNX Runtime count whole pixels.
DIFFERENT = {"test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners"}


@pytest.fixture(scope="module")
def cases():
    """(name, model, inputs, outputs) of numeric tests; definitions written out are left out, as a pass does that."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    found = []
    for case in collected:
        inputs, outputs = case.data_sets[0]
        if case.name.endswith("_expanded") or case.name in DIFFERENT:
            continue
        if all(isinstance(a, np.ndarray | np.generic) for a in (*inputs, *outputs)):
            arrays = [np.asarray(a) for a in inputs], [np.asarray(a) for a in outputs]
            if all(a.dtype.kind in "fiub" for group in arrays for a in group):
                found.append((case.name, case.model, *arrays))
    return found


def run(model, feeds):
    """The outputs; inputs after the first become constants if the model needs them to be. None if it is refused."""
    later = list(feeds)[1:]
    whole = [name for name in later if feeds[name].dtype.kind in "iu"]
    for fixed in ([], later, whole):
        if fixed is not whole or fixed:
            try:
                shapes = {name: array.shape for name, array in feeds.items() if name not in fixed}
                plan = zoi.compile(model, shapes, {name: feeds[name] for name in fixed}, arch="generic")
            except zoi.ZoiError:
                continue
            return zoi.Session(plan)({name: array for name, array in feeds.items() if name not in fixed})
    return None


def fault(found, expected):
    """What is wrong with an output, or None."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"found {found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
    if expected.dtype.kind != "f":
        return None if np.array_equal(found, expected) else "other integers"
    loose = 1e-2 if expected.dtype.itemsize == 2 else 1e-5
    a, b = found.astype(np.float64), expected.astype(np.float64)
    return None if np.allclose(a, b, 1e-3, loose, equal_nan=True) else f"off by {np.nanmax(np.abs(a - b))}"


def test_every_operator_agrees_or_is_refused(cases):
    counts, faults = Counter(), {}
    for name, model, inputs, outputs in cases:
        feeds = dict(zip([v.name for v in model.graph.input], inputs, strict=False))
        try:
            results = run(model, feeds)
        except Exception as error:
            faults[name] = repr(error)
            continue
        if results is None:
            counts["refused"] += 1
            continue
        counts["run"] += 1
        for value, expected in zip(model.graph.output, outputs, strict=False):
            problem = fault(results[value.name], expected)
            if problem:
                faults[name] = f"{value.name}: {problem}"
    assert not faults, "\n".join(f"{name}: {what}" for name, what in faults.items())
    assert counts["run"] >= SUPPORTED, counts
