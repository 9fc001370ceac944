"""The public Python API: compile, plan, save, load, session."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import zoi


def mlp():
    """x [2, 3] -> relu(x w + b) -> y [2, 4], and n = -y."""
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="dense"),
        helper.make_node("Relu", ["h"], ["y"], name="act"),
        helper.make_node("Neg", ["y"], ["n"], name="neg"),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("y", "n")],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return model, lambda x: np.maximum(x @ w + b, 0)


def counter():
    """total_out = total + x: a state."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "total", "total_out")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "total"], ["total_out"])], "counter", infos[:2], infos[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.fixture(scope="module")
def plan():
    return zoi.compile(mlp()[0])


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_session_runs_on_views_without_a_copy(plan):
    s = zoi.Session(plan)
    y = s.outputs["y"]
    s.inputs["x"][...] = X
    s.run()
    np.testing.assert_allclose(y, mlp()[1](X), rtol=1e-6)
    assert s.outputs["y"] is y
    assert np.shares_memory(y, s.outputs["y"])
    assert y.ctypes.data % 64 == 0


def test_run_is_the_native_method_itself(plan):
    assert type(zoi.Session(plan).run).__module__ != __name__
    assert not hasattr(zoi.Session(plan).run, "__code__")


def test_calling_a_session_copies_in_and_out(plan):
    s = zoi.Session(plan)
    first = s(x=X)
    second = s({"x": X * 2})
    np.testing.assert_allclose(first["y"], mlp()[1](X), rtol=1e-6)
    np.testing.assert_allclose(second["n"], -mlp()[1](X * 2), rtol=1e-6)
    assert list(first) == ["y", "n"]


def test_lists_and_numbers_become_the_type_of_the_input(plan):
    s = zoi.Session(plan)
    np.testing.assert_array_equal(s(x=X.tolist())["y"], s(x=X)["y"])


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"z": X, "x": X}, r"no input named 'z'; its inputs are x float32\[2, 3\]"),
        ({}, "missing 'x'"),
        ({"x": X[:1]}, r"found shape \[1, 3\]"),
        ({"x": X.astype(np.float64)}, r"found type float64; convert it with .astype\('float32'\)"),
        ({"x": "text"}, "found type"),
        ({"x": [[1], [1, 2]]}, "not an array"),
    ],
)
def test_what_does_not_fit_is_named(plan, feeds, message):
    with pytest.raises(zoi.InputError, match=message) as caught:
        zoi.Session(plan)(feeds)
    assert "mlp" in str(caught.value)


def test_a_view_cannot_be_replaced_by_mistake(plan):
    with pytest.raises(TypeError):
        zoi.Session(plan).inputs["x"] = X


def test_a_saved_plan_gives_the_same_bits(plan, tmp_path):
    plan.save(tmp_path / "m.zoi")
    expected = zoi.Session(plan)(x=X)
    for again in (zoi.Session(tmp_path / "m.zoi"), zoi.Session(zoi.load(tmp_path / "m.zoi"))):
        for name, array in again(x=X).items():
            np.testing.assert_array_equal(array, expected[name])


def test_a_plan_says_what_it_is(plan):
    assert plan.inputs == (zoi.TensorSpec("x", "float32", (2, 3)),)
    assert [o.name for o in plan.outputs] == ["y", "n"]
    assert plan.inputs[0].nbytes == 24
    assert plan.memory.total == sum(
        (plan.memory.weights, plan.memory.arena, plan.memory.scratch, plan.memory.bookkeeping)
    )
    assert plan.memory.lower_bound <= plan.memory.arena
    text = plan.explain()
    for step in plan.steps:
        assert step["name"] in text
        assert step["kernel"] in text
    assert str(plan.memory.total) in text
    assert "mlp" in repr(plan)


def test_memory_is_what_was_promised(plan):
    for lanes in (1, 2):
        s = zoi.Session(plan, lanes=lanes)
        assert s.lanes == lanes
        assert s.memory == plan.memory_for(lanes)


def test_a_state_goes_from_run_to_run_and_can_be_reset():
    s = zoi.Session(zoi.compile(counter(), state={"total_out": "total"}))
    ones = np.ones(4, np.float32)
    for run in range(1, 4):
        s.inputs["x"][...] = ones
        s.run()
        np.testing.assert_array_equal(s.outputs["total_out"], run * ones)
    assert s(x=ones)["total_out"][0] == 4
    assert s(x=ones, total=10 * ones)["total_out"][0] == 11
    s.reset()
    assert s(x=ones)["total_out"][0] == 1


def test_a_state_that_does_not_exist_is_named():
    with pytest.raises(zoi.InputError, match="'nothing'"):
        zoi.compile(counter(), state={"nothing": "total"})


def test_an_operator_without_a_kernel_is_named():
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"], name="odd")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    with pytest.raises(zoi.UnsupportedOperator, match="odd"):
        zoi.compile(model)


def test_a_model_can_be_a_path_or_bytes_or_loaded(tmp_path):
    model, reference = mlp()
    onnx.save(model, tmp_path / "m.onnx")
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), model.SerializeToString(), model):
        np.testing.assert_allclose(zoi.Session(zoi.compile(source))(x=X)["y"], reference(X), rtol=1e-6)


def test_importing_zoi_is_quick_and_brings_no_onnx():
    # CPU time, so that what else runs here does not count.
    code = (
        "import time; t = time.process_time(); import zoi, sys; t = time.process_time() - t; "
        "print(t, [m for m in ('onnx', 'onnx_ir', 'onnxruntime', 'typer') if m in sys.modules])"
    )
    outs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    assert all(out.stdout.split(maxsplit=1)[1].strip() == "[]" for out in outs)
    assert min(float(out.stdout.split()[0]) for out in outs) < 0.1


def test_a_saved_plan_needs_no_onnx(plan, tmp_path):
    plan.save(tmp_path / "m.zoi")
    code = (
        "import sys; sys.modules['onnx'] = sys.modules['onnx_ir'] = None; import zoi; "
        f"s = zoi.Session({str(tmp_path / 'm.zoi')!r}); s.run(); print(s.outputs['y'].shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, 4)"
