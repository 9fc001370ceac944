"""The lab without a GPU: its checks catch what is wrong, its records fit the machine, its files and pages are whole."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from zoi.kernels.registry import Machine, Workload, parameter
from zoi.lab import dtypes, suites
from zoi.lab.check import extreme, judge
from zoi.lab.cli import app
from zoi.lab.compare import compare
from zoi.lab.definition import DEFINITIONS
from zoi.lab.report import html
from zoi.lab.solutions import add, solution, solutions
from zoi.lab.trace import Run, Trace, workload_json

SMALL = [
    suites.gemm(5, 12, 40),
    suites.gemm(4, 8, 32, "e4m3"),
    suites.gemm(6, 16, 24, "f16", bias=True, activation="silu"),
    Workload("attention.forward", {"batch": 2, "seq_q": 5, "seq_k": 9, "heads": 4, "kv_heads": 2, "dim": 64}, "bf16"),
    suites.attention(1, 7, 2, 64, True),
    suites.decode(2, 11, 8, 2, 64),
    suites.rows("softmax", 3, 20),
    suites.rows("rmsnorm", 3, 20),
    suites.rows("swiglu", 3, 20),
]


def operands(w, rng):
    tensors = DEFINITIONS[w.definition].tensors(w)
    return {t.name: dtypes.encode(rng.standard_normal(t.shape) * t.spread, t.dtype) for t in tensors if not t.output}


def honest(w, bits):
    """The reference rounded to the dtype of each output: what a perfect kernel would give."""
    definition = DEFINITIONS[w.definition]
    exact = definition.reference(w, bits, np.arange(definition.points(w)))
    outputs = {}
    for t in definition.tensors(w):
        if t.output:
            rounded = dtypes.encode(exact[t.name].values, t.dtype)
            if w.definition.startswith("attention"):
                order = (w["batch"], w["heads"], w["seq_q"])
                outputs[t.name] = (
                    rounded.reshape(order) if t.name == "lse" else rounded.reshape(*order, -1).transpose(0, 2, 1, 3)
                )
            else:
                outputs[t.name] = rounded.reshape(t.shape)
    return outputs


@pytest.mark.parametrize("w", SMALL, ids=lambda w: f"{w.definition} {w.name}")
def test_the_rounded_reference_passes_and_errors_do_not(w):
    bits = operands(w, np.random.default_rng(1))
    right = honest(w, bits)
    assert judge(w, lambda: bits, lambda: right).failures == []
    name = next(iter(right))
    for change in (lambda x: x * 1.05 + 0.01, lambda x: np.roll(x, 1, axis=-1), np.zeros_like):
        dtype = next(t.dtype for t in DEFINITIONS[w.definition].tensors(w) if t.name == name)
        wrong = {**right, name: dtypes.encode(change(dtypes.decode(right[name], dtype)), dtype)}
        assert not judge(w, lambda: bits, lambda wrong=wrong: wrong).passed


def test_cheating_is_caught():
    w = suites.gemm(5, 12, 40)
    bits = operands(w, np.random.default_rng(2))
    right = honest(w, bits)

    unwritten = {"c": right["c"].copy()}
    unwritten["c"][3, 7] = 0xFFFF
    assert any("not written" in f for f in judge(w, lambda: bits, lambda: unwritten).failures)

    nan = {"c": right["c"].copy()}
    nan["c"][0, 0] = 0x7FC0
    assert not judge(w, lambda: bits, lambda: nan).passed

    runs = iter([right, right, {"c": right["c"] ^ 1}])
    assert any("run to run" in f for f in judge(w, lambda: bits, lambda: next(runs)).failures)

    changing = {name: value.copy() for name, value in bits.items()}

    def spoil():
        changing["a"][0, 0] ^= 1
        return right

    assert any("written to" in f for f in judge(w, lambda: {k: v.copy() for k, v in changing.items()}, spoil).failures)


@pytest.mark.parametrize("kind", ["large", "tiny", "equal", "outlier"])
def test_extremes_have_finite_references(kind):
    w = suites.attention(1, 9, 2, 64, True)
    bits = {
        t.name: extreme(kind, t.shape, t.dtype, t.spread) for t in DEFINITIONS[w.definition].tensors(w) if not t.output
    }
    assert judge(w, lambda: bits, lambda: honest(w, bits)).failures == []


def test_small_types_round_to_nearest():
    values = np.array([1.0, 1.00390625, 1.01171875, -3.14159, 0.0, 65504.0, 1e-3])
    bf16 = dtypes.decode(dtypes.encode(values, "bf16"), "bf16")
    assert np.all(np.abs(bf16 - values) <= dtypes.UNIT["bf16"] * np.abs(values))
    assert bf16[1] == 1.0  # halfway, to even
    every = np.arange(256, dtype=np.uint8)
    whole = every[~np.isnan(dtypes.E4M3)]
    assert np.array_equal(dtypes.encode(dtypes.decode(whole, "e4m3"), "e4m3"), whole)
    assert dtypes.decode(dtypes.encode(np.array([1e9, -1e9]), "e4m3"), "e4m3").tolist() == [448.0, -448.0]


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_records_fit_the_machine(capability):
    machine = Machine(capability)
    shared = {80: 166912, 90: 232448, 100: 232448}[capability]
    for s in solutions():
        runs = capability == s.arch if s.exact_arch else capability >= s.arch
        if s.build is None or not runs:
            continue
        for w in [w for family in (*suites.CHECKS.values(), *suites.BENCH.values()) for w in family]:
            for config in s.configs(w, machine) if w.definition == s.definition else ():
                build = s.build(w, config, machine)
                assert 0 < build.shared <= shared, (s.name, w.name, config)
                assert min(build.grid) > 0 and build.grid[0] % build.cluster == 0
                assert max(build.grid[1:]) < 65536 and build.threads <= 1024


def test_parameters_are_laid_out_as_c_does():
    assert len(parameter("8ifQ", *range(8), 1.0, 2)) == 48
    assert parameter("i", 1) == b"\x01\0\0\0"


def test_every_definition_has_a_solution_and_outsiders_can_add_one():
    assert {w.definition for family in suites.BENCH.values() for w in family} <= set(DEFINITIONS)
    assert solution("gemm_sm90").definition == "gemm"
    own = type(solution("gemm_sm90"))("mine", "gemm", "cuda", 80, lambda w, m: ())
    assert add(own) in solutions()
    with pytest.raises(KeyError, match="gemm_sm90"):
        solution("nonsense")


def trace(us, passed=True, name="k"):
    w = suites.gemm(64, 64, 64)
    check = {"passed": passed, "failures": [], "relative": 1e-3}
    return Trace(
        "gemm", workload_json(w), name, {"n": 1}, "c", "s", 1, 0, 1e9, 1000, {"cold": us, "warm": us},
        {"cublas": {"cold": 10.0, "warm": 10.0}}, check,
    )  # fmt: skip


def test_runs_survive_their_file_and_the_gate_sees_what_got_worse(tmp_path):
    old, new = Run({"gpu": "g"}, [trace(10.0), trace(10.0, name="b")]), Run({"gpu": "g"}, [trace(12.0)])
    for name, run in (("old", old), ("new", new)):
        run.save(tmp_path / f"{name}.json")
        assert Run.load(tmp_path / f"{name}.json") == run
    result = compare(old, new)
    assert [c.speedup for c in result.changes] == [10.0 / 12.0]
    assert len(result.regressions()) == 1 and len(result.missing) == 1
    assert not compare(old, old).regressions()
    assert compare(old, Run({"gpu": "g"}, [trace(1.0, passed=False)])).regressions()
    runner = CliRunner()
    assert runner.invoke(app, ["compare", str(tmp_path / "old.json"), str(tmp_path / "new.json")]).exit_code == 1
    assert runner.invoke(app, ["compare", str(tmp_path / "old.json"), str(tmp_path / "old.json")]).exit_code == 0


def test_the_report_is_one_page_by_itself(tmp_path):
    page = html([Run({"gpu": "<g>"}, [trace(9.0)]), Run({"gpu": "<g>"}, [trace(10.0), trace(5.0, name="b")])])
    assert "2.00x" in page and "<svg" in page and "&lt;g&gt;" in page and "9.0" in page
    assert "http" not in page and "<script" not in page
    Run({"gpu": "g"}, [trace(1.0)]).save(tmp_path / "r.json")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.html")])
    assert done.exit_code == 0 and (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_the_list_says_whether_a_gpu_is_there():
    done = CliRunner().invoke(app, ["list"])
    assert done.exit_code == 0 and "attention_forward_sm90" in done.output and "this machine" in done.output


def test_results_in_the_repository_can_be_read():
    from pathlib import Path

    for path in (Path(__file__).parents[2] / "benchmarks" / "results").glob("gpu_*.json"):
        run = Run.load(path)
        assert run.machine["gpu"] and run.traces
        json.dumps(run.machine)
