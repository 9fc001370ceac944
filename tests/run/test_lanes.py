"""Lanes: the same bits on any number of them, on the cores that were asked for, and no harm after a fork."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.programs import gather, mixed, mlp
from zoi import _native

CORES = sorted(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(len(CORES) < 2, reason="this machine lends one core")


def run_in_child(code, *arguments, before=()):
    """Runs Python code in a process of its own, so that pinning does not reach the other tests."""
    command = [
        *before,
        sys.executable,
        "-c",
        "from zoi import _native\nfrom tests.programs import *\n" + code,
        *map(str, arguments),
    ]
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(Path(_native.__file__).parents[1]), *sys.path])}
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, cwd=root)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def output(session):
    x = session.input("x")
    x[...] = np.linspace(-1, 1, x.size, dtype=np.float32).reshape(x.shape)
    session.run()
    return session.output("y").copy()


@pytest.mark.parametrize("armed", [False, True])
@pytest.mark.parametrize("sizes", [(16, 64, 64, 8), (300, 520, 260, 8), (512, 512, 512, 512)])
def test_any_number_of_lanes_gives_the_same_bits(sizes, armed):
    plan = _native.Plan(mlp(sizes, rows=5))
    wanted = output(_native.Session(plan))
    for split_all in (False, True):
        session = _native.Session(plan, lanes=2, armed=armed, split_all=split_all)
        assert session.lanes == min(2, len(CORES))
        for _ in range(50):
            assert np.array_equal(output(session), wanted)


def test_many_sessions_in_parallel_threads_give_the_same_bits():
    plan = _native.Plan(mlp((256, 256, 256)))
    wanted = output(_native.Session(plan))
    wrong = []

    def work(lanes):
        session = _native.Session(plan, lanes=lanes, split_all=True)
        for _ in range(100):
            if not np.array_equal(output(session), wanted):
                wrong.append(lanes)

    threads = [threading.Thread(target=work, args=(1 + i % 2,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_session_in_use_refuses_a_second_thread():
    session = _native.Session(_native.Plan(mlp((1024,) * 9, rows=64)))
    errors, done = [], threading.Event()

    def work():
        while not done.is_set():
            try:
                session.run()
            except ValueError as error:
                errors.append(str(error))
                done.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    done.wait(30)
    done.set()
    for thread in threads:
        thread.join()
    assert errors and "another thread" in errors[0]
    session.run()


def test_memory_grows_by_the_scratch_of_each_lane_only():
    plan = _native.Plan(mlp((300, 520, 260, 8)))
    one, two = plan.memory(1), plan.memory(2)
    assert two["scratch"] == 2 * one["scratch"]
    assert {k: v for k, v in one.items() if k not in ("scratch", "total")} == {
        k: v for k, v in two.items() if k not in ("scratch", "total")
    }
    session = _native.Session(plan, lanes=2)
    assert session.memory == plan.memory(session.lanes)


@two_cores
def test_an_error_on_another_lane_is_reported():
    p = _native.Program("gather")
    rows, inner = 64, 4096
    x, index, y = p.constant(np.ones((4, inner), np.float32)), p.buffer(rows * 8), p.buffer(rows * inner * 4)
    p.input("index", "int64", (rows,), index)
    p.output("y", "float32", (rows, inner), y)
    gather(p, "g", x, index, y, axis=4, inner=inner, indices=rows)
    session = _native.Session(_native.Plan(p), lanes=2, split_all=True)
    session.run()
    session.input("index")[-1] = 4  # the last rows are the other lane's
    with pytest.raises(ValueError, match="out of range"):
        session.run()
    session.input("index")[-1] = 3
    session.run()
    assert np.all(session.output("y") == 1)


def test_cores_that_may_not_be_used_are_refused():
    plan = _native.Plan(mlp())
    with pytest.raises(ValueError, match=r"core 4095 is not one that this thread may use; it may use "):
        _native.Session(plan, cores=[4095])
    with pytest.raises(ValueError, match="core -1"):
        _native.Session(plan, cores=[-1])
    with pytest.raises(ValueError, match="named twice"):
        _native.Session(plan, cores=[CORES[0]] * 2)
    with pytest.raises(ValueError, match="2 lanes need as many cores; found 1"):
        _native.Session(plan, cores=[CORES[0]], lanes=2)


def test_cores_pin_the_caller_and_can_be_chosen_again():
    code = """if 1:
        import os
        cores = sorted(os.sched_getaffinity(0))
        plan = _native.Plan(mlp())
        for core in cores:
            session = _native.Session(plan, cores=[core])
            session.run()
            assert os.sched_getaffinity(0) == {core}
        assert _native.Session(plan, lanes=2).lanes == min(2, len(cores)), "pinning the caller does not count"
        print("done")
    """
    assert run_in_child(code) == ["done"]


@two_cores
def test_every_lane_is_pinned_to_its_core_and_ends_with_the_session():
    code = """if 1:
        import os
        from pathlib import Path
        cores = sorted(os.sched_getaffinity(0))[:2]
        lanes = lambda: [t for t in Path("/proc/self/task").iterdir() if "zoi-lane" in (t / "comm").read_text()]
        session = _native.Session(_native.Plan(mlp((512, 512, 512))), cores=cores, split_all=True)
        session.run()
        thread, = lanes()
        assert os.sched_getaffinity(int(thread.name)) == {cores[1]}
        assert os.sched_getaffinity(0) == {cores[0]}
        del session
        assert not lanes()
        print("done")
    """
    assert run_in_child(code) == ["done"]


def test_affinity_limits_the_lanes():
    code = """if 1:
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        session = _native.Session(_native.Plan(mlp((512, 512, 512))), lanes=2, split_all=True)
        session.run()
        print(session.lanes)
    """
    assert run_in_child(code) == ["1"]


@two_cores
@pytest.mark.skipif(shutil.which("taskset") is None, reason="no taskset")
def test_taskset_limits_the_lanes():
    code = """if 1:
        plan = _native.Plan(mlp((512, 512, 512)))
        print(_native.Session(plan, lanes=2).lanes)
        try:
            _native.Session(plan, cores=[0, 4095])
        except ValueError as error:
            print("refused")
    """
    assert run_in_child(code, before=["taskset", "-c", str(CORES[0])]) == ["1", "refused"]


@two_cores
def test_a_cpu_quota_limits_the_lanes(tmp_path):
    base = Path("/sys/fs/cgroup/cpu") if Path("/sys/fs/cgroup/cpu").is_dir() else Path("/sys/fs/cgroup")
    group = base / f"zoi-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"may not make a cgroup: {error}")
    try:
        try:
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text("100000 100000")
            else:
                (group / "cpu.cfs_quota_us").write_text("100000")
        except OSError as error:
            pytest.skip(f"may not set a quota: {error}")
        code = """if 1:
            import os, sys
            open(sys.argv[1], "w").write(str(os.getpid()))
            session = _native.Session(_native.Plan(mlp((512, 512, 512))), lanes=2, split_all=True)
            session.run()
            print(session.lanes)
        """
        assert run_in_child(code, group / "cgroup.procs") == ["1"]
    finally:
        group.rmdir()


@pytest.mark.parametrize("armed", [False, True])
def test_a_forked_child_runs_alone_and_right(armed):
    code = """if 1:
        import os, sys
        session = _native.Session(_native.Plan(mlp((512, 512, 512))), lanes=2, armed=sys.argv[1] == "1", split_all=True)
        session.input("x")[...] = 1
        session.run()
        wanted = session.output("y").copy()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                session.output("y")[...] = 0
                for _ in range(3):
                    session.run()
                right = (session.output("y") == wanted).all()
                del session
                os._exit(0 if right else 1)
            session.run()
            assert os.waitpid(child, 0)[1] == 0
        assert (session.output("y") == wanted).all()
        print("done")
    """
    assert run_in_child(code, int(armed)) == ["done"]


def test_a_state_is_carried_on_two_lanes():
    plan = _native.Plan(mixed())
    sessions = [_native.Session(plan, lanes=lanes, split_all=True) for lanes in (1, 2)]
    for _ in range(5):
        for session in sessions:
            session.input("x")[...] = 1
            session.run()
        assert np.array_equal(sessions[0].output("total_out"), sessions[1].output("total_out"))
