"""The timer takes turns, keeps every run, and counts only what it says."""

import gc
import time

import numpy as np
import pytest

from zoi.bench import timer


def test_percentiles_are_runs_that_took_place():
    samples = np.arange(1, 1001, dtype=np.int64) * 1000
    stats = timer.Stats.of(samples)
    assert (stats.runs, stats.min, stats.p50, stats.p99, stats.p999, stats.max) == (
        1000,
        1.0,
        501.0,
        991.0,
        1000.0,
        1000.0,
    )


def test_no_runs_have_no_percentiles():
    with pytest.raises(ValueError, match="no runs"):
        timer.Stats.of(np.array([], np.int64))


def test_contenders_take_turns_in_alternating_order():
    calls: list[str] = []
    contenders = {name: [lambda name=name: calls.append(name)] for name in "ab"}
    samples = timer.measure(contenders, runs=40)
    block = 40 // timer.ROUNDS + timer.SETTLE
    timed = "".join(calls)[-2 * block * timer.ROUNDS :]
    assert timed == ("a" * block + "b" * 2 * block + "a" * block) * (timer.ROUNDS // 2)
    assert {name: len(series) for name, series in samples.items()} == {"a": 40, "b": 40}


def test_inputs_rotate_evenly():
    seen: list[int] = []
    timer.measure({"a": [lambda index=index: seen.append(index) for index in range(4)]}, runs=100)
    counts = np.bincount(seen)
    assert counts.max() - counts.min() <= 1


def test_a_longer_call_measures_longer():
    samples = timer.measure({"short": [lambda: time.sleep(0.001)], "long": [lambda: time.sleep(0.003)]}, runs=20)
    assert np.median(samples["short"]) >= 1e6
    assert np.median(samples["long"]) >= 3e6
    assert np.median(samples["short"]) < np.median(samples["long"])


def test_the_idle_gap_is_not_part_of_a_run():
    samples = timer.measure({"a": [lambda: None]}, runs=5, idle_gap_ms=5)
    assert np.median(samples["a"]) < 1e6


@pytest.mark.parametrize(("length", "runs"), [(1e-6, 100_000), (5e-4, 2000), (0.9e-3, 1111), (0.1, 30)])
def test_short_runs_are_made_a_thousand_times_at_least(length, runs):
    assert timer.choose_runs(length, seconds=1.0) == runs
    assert timer.choose_runs(0.9e-3, seconds=0.01) == timer.MIN_RUNS


def test_the_collector_is_as_it_was_found():
    assert gc.isenabled()
    timer.measure({"a": [lambda: None]}, runs=1)
    assert gc.isenabled()


def test_progress_ends_at_one():
    shares: list[float] = []
    timer.measure({"a": [lambda: None], "b": [lambda: None]}, runs=10, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
