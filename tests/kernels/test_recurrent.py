"""recurrent: LSTM, GRU and RNN with every option, against the equations of the ONNX specification in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Array, assert_close, check, gaps_untouched, run_everywhere

SIMD = ("generic", "avx2", "avx512")
RNG = np.random.default_rng(16)
LSTM, GRU, RNN = 0, 1, 2
GATES = {LSTM: 4, GRU: 3, RNN: 1}
RELU, SIGMOID, TANH, HARD_SIGMOID, LEAKY_RELU, SOFTPLUS = 1, 3, 4, 8, 10, 12
USUAL = {LSTM: (SIGMOID, TANH, TANH), GRU: (SIGMOID, TANH, 0), RNN: (TANH, 0, 0)}


def activation(act: int, v: Array, p0: float, p1: float) -> Array:
    with np.errstate(over="ignore"):
        if act == RELU:
            return np.maximum(v, 0)
        if act == SIGMOID:
            return 1 / (1 + np.exp(-v))
        if act == TANH:
            return np.tanh(v)
        if act == HARD_SIGMOID:
            return np.clip(p0 * v + p1, 0, 1)
        if act == LEAKY_RELU:
            return np.where(v < 0, p0 * v, v)
        if act == SOFTPLUS:
            return np.logaddexp(0, v)
    raise AssertionError(act)


class Cell:
    """One batch's state and one step of it."""

    def __init__(self, problem: dict[str, Any], o: dict[str, Array | None], b: int) -> None:
        n = self.n = problem["hidden"]
        self.p = problem
        self.r = o["r"].astype(np.float64).reshape(-1, n, n)  # type: ignore[union-attr]
        gates = self.r.shape[0]
        self.bias = np.zeros((gates, n)) if o["r_bias"] is None else o["r_bias"].astype(np.float64).reshape(gates, n)
        self.peephole = np.zeros((3, n)) if o["peephole"] is None else o["peephole"].astype(np.float64).reshape(3, n)
        self.h, self.c = (np.zeros(n) if o[k] is None else o[k][b].astype(np.float64) for k in ("h0", "c0"))

    def act(self, which: int, v: Array) -> Array:
        if self.p["clip"] and which < 2:
            v = np.clip(v, -self.p["clip"], self.p["clip"])
        code = (self.p["act_f"], self.p["act_g"], self.p["act_h"])[which]
        return activation(code, v, self.p["act_p0"][which], self.p["act_p1"][which])

    def step(self, x: Array) -> None:
        x = x.astype(np.float64).reshape(-1, self.n)
        if self.p["kind"] == LSTM:
            i, o, f, c = x + self.r @ self.h + self.bias
            i = self.act(0, i + self.peephole[0] * self.c)
            f = 1 - i if self.p["input_forget"] else self.act(0, f + self.peephole[2] * self.c)
            self.c = f * self.c + i * self.act(1, c)
            self.h = self.act(0, o + self.peephole[1] * self.c) * self.act(2, self.c)
        elif self.p["kind"] == GRU:
            z, r = self.act(0, x[:2] + self.r[:2] @ self.h + self.bias[:2])
            if self.p["linear_before_reset"]:
                n = x[2] + r * (self.r[2] @ self.h + self.bias[2])
            else:
                n = x[2] + self.r[2] @ (r * self.h) + self.bias[2]
            self.h = (1 - z) * self.act(1, n) + z * self.h
        else:
            self.h = self.act(0, x[0] + self.r[0] @ self.h + self.bias[0])


def reference(p: dict[str, Any], o: dict[str, Array | None]) -> dict[str, Array]:
    seq, batch, n = p["seq"], p["batch"], p["hidden"]
    result = {"y": np.zeros((seq, batch, n)), "y_h": np.zeros((batch, n)), "y_c": np.zeros((batch, n))}
    for b in range(batch):
        cell = Cell(p, o, b)
        length = seq if o["seq_lens"] is None else int(np.clip(o["seq_lens"][b], 0, seq))
        for t in range(length)[:: -1 if p["reverse"] else 1]:
            cell.step(o["x"][t, b])  # type: ignore[index]
            result["y"][t, b] = cell.h
        result["y_h"][b], result["y_c"][b] = cell.h, cell.c
    return result


def make(
    kind: int, seq: int, batch: int, hidden: int, bias: bool = True, peephole: bool = False, states: bool = True,
    lens: Array | None = None, y_gap: int = 0, **changes: Any,
) -> tuple[dict[str, Any], dict[str, Array | None]]:  # fmt: skip
    gates = GATES[kind]
    f, g, h = USUAL[kind]

    def weights(*shape: int) -> Array:
        return (RNG.standard_normal(shape) / np.sqrt(hidden)).astype(np.float32)

    x = RNG.standard_normal((seq, batch, gates * hidden + 1)).astype(np.float32)[..., :-1]
    y = np.empty((batch, seq, hidden + y_gap), np.float32).transpose(1, 0, 2)[..., :hidden]
    is_lstm = kind == LSTM
    operands: dict[str, Array | None] = {
        "x": x, "r": weights(gates * hidden, hidden), "r_bias": weights(gates * hidden) if bias else None,
        "peephole": weights(3 * hidden) if peephole else None, "h0": weights(batch, hidden) if states else None,
        "c0": weights(batch, hidden) if states and is_lstm else None, "seq_lens": lens, "y": y,
        "y_h": np.empty((batch, hidden), np.float32), "y_c": np.empty((batch, hidden), np.float32) if is_lstm else None,
    }  # fmt: skip
    problem = {
        "kind": kind, "seq": seq, "batch": batch, "hidden": hidden, "reverse": 0, "linear_before_reset": 0,
        "input_forget": 0, "clip": 0.0, "act_f": f, "act_g": g, "act_h": h, "act_p0": [0.0] * 3, "act_p1": [0.0] * 3,
        "x_step": x.strides[0] // 4, "x_batch": x.strides[1] // 4, "y_step": y.strides[0] // 4,
        "y_batch": y.strides[1] // 4, **changes,
    }  # fmt: skip
    return problem, operands


def compare(problem: dict[str, Any], operands: dict[str, Array | None]) -> None:
    wanted = reference(problem, operands)
    for name in run_everywhere("recurrent", problem, operands, SIMD):
        for key in ("y", "y_h", "y_c"):
            found = operands[key]
            if found is not None:
                assert_close(found, wanted[key], 0, 5e-6, f"{name} {key}")
                assert gaps_untouched(found), name


CELLS = [(LSTM, {}), (GRU, {"linear_before_reset": 0}), (GRU, {"linear_before_reset": 1}), (RNN, {})]


@pytest.mark.parametrize(("kind", "option"), CELLS)
@pytest.mark.parametrize("hidden", [1, 3, 8, 13, 16, 17, 31, 32, 64, 100])
def test_hidden_sizes(hidden: int, kind: int, option: dict[str, int]) -> None:
    compare(*make(kind, 4, 1, hidden, **option))


@pytest.mark.parametrize(("kind", "option"), CELLS)
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 7, 11])
def test_batches(batch: int, kind: int, option: dict[str, int]) -> None:
    compare(*make(kind, 3, batch, 20, y_gap=3, **option))


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(("kind", "option"), CELLS)
def test_sequence_lengths(kind: int, option: dict[str, int], reverse: int) -> None:
    lens = np.array([5, 0, 3, 1, 4, 99, -2], np.int32)
    compare(*make(kind, 5, 7, 10, lens=lens, reverse=reverse, **option))
    compare(*make(kind, 5, 1, 24, lens=np.array([2], np.int32), reverse=reverse, **option))
    compare(*make(kind, 6, 1, 24, reverse=reverse, **option))


@pytest.mark.parametrize(("kind", "option"), CELLS)
def test_without_optional_operands(kind: int, option: dict[str, int]) -> None:
    for missing in (["y"], ["y_h"], ["y_c"], ["y", "y_c"], ["h0"], ["c0"], ["r_bias"], ["h0", "c0", "r_bias"]):
        problem, operands = make(kind, 3, 2, 18, **option)
        compare(problem, operands | dict.fromkeys(missing))


@pytest.mark.parametrize("clip", [0.0, 0.3])
@pytest.mark.parametrize("input_forget", [0, 1])
@pytest.mark.parametrize("peephole", [False, True])
def test_lstm_options(peephole: bool, input_forget: int, clip: float) -> None:
    compare(*make(LSTM, 4, 3, 21, peephole=peephole, input_forget=input_forget, clip=clip))


@pytest.mark.parametrize(("kind", "option"), CELLS)
def test_clip(kind: int, option: dict[str, int]) -> None:
    compare(*make(kind, 4, 2, 12, clip=0.25, **option))


@pytest.mark.parametrize(("kind", "option"), CELLS)
def test_other_activations(kind: int, option: dict[str, int]) -> None:
    custom = {"act_p0": [0.2, 0.1, 0.0], "act_p1": [0.5, 0.0, 0.0], **option}
    compare(*make(kind, 3, 2, 19, act_f=HARD_SIGMOID, act_g=LEAKY_RELU, act_h=SOFTPLUS, **custom))
    compare(*make(kind, 3, 1, 19, act_f=SIGMOID, act_g=RELU, act_h=RELU, **custom))


@pytest.mark.parametrize(("kind", "option"), CELLS)
def test_no_steps_keep_the_state(kind: int, option: dict[str, int]) -> None:
    problem, operands = make(kind, 0, 2, 9, **option)
    compare(problem, operands | {"y": None})


@pytest.mark.parametrize(("kind", "option"), CELLS)
def test_a_nan_stays_in_its_batch(kind: int, option: dict[str, int]) -> None:
    problem, operands = make(kind, 3, 5, 16, **option)
    operands["x"][1, 2] = np.nan  # type: ignore[index]
    compare(problem, operands)


def test_large_sums_saturate() -> None:
    for kind, option in CELLS:
        problem, operands = make(kind, 3, 1, 16, **option)
        operands["x"] *= 1e4  # type: ignore[operator]
        compare(problem, operands)


@pytest.mark.parametrize("change", [
    {"kind": 3}, {"hidden": 7}, {"hidden": 0}, {"seq": 4}, {"batch": 3}, {"act_f": 99}, {"act_h": -1}, {"clip": -1.0},
    {"clip": float("nan")}, {"x_step": 100}, {"x_batch": 40}, {"y_step": 0}, {"y_batch": 30}, {"batch": -1},
    {"kind": 1}, {"hidden": 1 << 31}, {"seq": 1 << 31},
])  # fmt: skip
def test_refuses_what_leaves_its_memory(change: dict[str, Any]) -> None:
    problem, operands = make(LSTM, 3, 2, 6, peephole=True, lens=np.zeros(2, np.int32))
    check("recurrent", problem, operands)
    with pytest.raises(ValueError):
        check("recurrent", problem | change, operands)
