"""The command line, as a person types it."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from zoi.cli import app


@pytest.fixture
def model(tmp_path):
    """y = relu(x w) with an open batch."""
    w = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(w, "w")],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path, w


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_compile_then_run_gives_the_answer(model, tmp_path):
    path, w = model
    x = np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    assert "steps" in invoke("compile", path, "-o", tmp_path / "p.zoi", "--shape", "x=2,8")
    for source in (tmp_path / "p.zoi", path):
        invoke("run", source, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
        np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)


def test_run_makes_up_what_is_not_given(model):
    assert "y float32[3, 5]" in invoke("run", model[0], "--shape", "x=3,8")


def test_inspect_shows_plan_and_graph(model, tmp_path):
    invoke("compile", model[0], "-o", tmp_path / "p.zoi", "--shape", "x=1,8")
    for text in (invoke("inspect", tmp_path / "p.zoi"), invoke("inspect", model[0], "--shape", "x=1,8")):
        assert "gemm" in text
        assert "bytes with one lane" in text
    assert "Gemm" in invoke("inspect", model[0], "--graph", "--shape", "x=1,8")


def test_bench_checks_and_writes_every_figure(model, tmp_path):
    figures, picture = tmp_path / "out.json", tmp_path / "out.png"
    text = invoke(
        "bench", model[0], "--shape", "x=1,8", "--vs", "ort", "--runs", 200, "--json", figures, "--picture", picture
    )
    assert "zoi" in text
    report = json.loads(figures.read_text())
    ours, theirs = report["results"]
    assert (ours["name"], theirs["name"]) == ("zoi", "ort")
    assert ours["us"]["runs"] == theirs["us"]["runs"] == 200
    assert ours["us"]["min"] <= ours["us"]["p50"] <= ours["us"]["p99"] <= ours["us"]["p999"] <= ours["us"]["max"]
    assert ours["error"] <= 1e-4
    assert ours["memory_bytes"] > 0
    assert set(report["ratio_of_medians"]) == {"ort"}
    assert report["machine"]["cpu"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_peer_that_fails_does_not_stop_the_others(model, monkeypatch):
    from zoi.bench import peers

    def broken(*_):
        raise RuntimeError("no such luck")

    monkeypatch.setitem(peers.PEERS, "openvino", broken)
    text = invoke("bench", model[0], "--shape", "x=1,8", "--vs", "openvino,ort", "--runs", 20, "--no-memory")
    assert "openvino failed: RuntimeError: no such luck" in text


def test_kernels_and_doctor_list_what_there_is():
    text = invoke("kernels")
    assert "gemm" in text
    assert "generic" in text
    assert "hypervisor" in invoke("doctor")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "x"], "NAME=VALUE"),
        (["--shape", "x=a,b"], "NAME=1,3,224,224"),
        (["--shape", "q=1,8"], "q"),
        ([], "x"),
    ],
)
def test_mistakes_are_one_message_not_a_traceback(model, tmp_path, arguments, message):
    text = invoke("compile", model[0], "-o", tmp_path / "p.zoi", *arguments, code=2)
    assert message in text
    assert "Traceback" not in text


def test_a_file_that_is_no_plan_is_an_error(tmp_path):
    (tmp_path / "bad.zoi").write_bytes(b"not a plan at all")
    assert "error" in invoke("inspect", tmp_path / "bad.zoi", code=2)
