"""The .zoi file: what is saved comes back, and no file, however broken, does harm."""

import random
import struct
import subprocess
import sys

import numpy as np
import pytest

from tests.programs import TABLE, mixed, mlp
from zoi import _native

HEADER = struct.Struct("<8sIIQQQQ16x")
X = np.arange(8, dtype=np.float32).reshape(2, 4)


def fnv1a(data, value=0xCBF29CE484222325):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def sealed(data):
    """`data` with its length and checksum made right, so that it is read further."""
    magic, version, size, _, metadata, offset, _ = HEADER.unpack(data[:64])
    head = HEADER.pack(magic, version, size, len(data), metadata, offset, 0)
    check = fnv1a(head + data[64 : 64 + metadata])
    return HEADER.pack(magic, version, size, len(data), metadata, offset, check) + data[64:]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.zoi"
    _native.Plan(mixed()).save(str(path))
    return path


def load(path, data=None):
    if data is not None:
        path.write_bytes(data)
    return _native.Plan.load(str(path))


def run(plan, times=2):
    session = _native.Session(plan)
    session.input("x")[...] = X
    session.input("index")[...] = [2, -1, 0]
    for _ in range(times):
        session.run()
    return {o["name"]: session.output(o["name"]).copy() for o in plan.outputs}


def test_a_loaded_plan_gives_the_same_bits_and_says_the_same(path):
    made, loaded = _native.Plan(mixed()), load(path)
    wanted, found = run(made), run(loaded)
    for name, value in wanted.items():
        assert np.array_equal(found[name], value)
    assert np.array_equal(found["rows"], TABLE[[2, 3, 0]])
    assert np.allclose(found["total_out"], 2 * X @ TABLE)
    assert loaded.steps == made.steps
    assert loaded.memory() == made.memory()
    assert (loaded.name, loaded.inputs, loaded.outputs, loaded.states) == (
        made.name, made.inputs, made.outputs, made.states)  # fmt: skip


def test_saving_a_loaded_plan_writes_the_same_bytes(path):
    before = path.read_bytes()
    plan = load(path)
    plan.save(str(path))
    assert path.read_bytes() == before
    assert run(plan).keys() == {"y", "rows", "total_out"}, "the plan keeps the file it was made from"


def test_constants_are_aligned_and_the_rest_of_the_folder_is_untouched(path):
    data = path.read_bytes()
    _, _, _, size, _, offset, _ = HEADER.unpack(data[:64])
    assert size == len(data) and offset % 64 == 0
    assert data[offset : offset + TABLE.nbytes] == TABLE.tobytes()
    assert [p.name for p in path.parent.iterdir()] == ["m.zoi"]


def test_a_failed_save_leaves_nothing(tmp_path):
    plan = _native.Plan(mlp())
    with pytest.raises(ValueError, match=r"missing/m\.zoi.*cannot be written"):
        plan.save(str(tmp_path / "missing" / "m.zoi"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=r"folder.*cannot be written"):
        plan.save(str(tmp_path / "folder"))
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: b"", "too short"),
        (lambda d: d[:63], "too short"),
        (lambda d: b"x" + d[1:], "not a .zoi file"),
        (lambda d: d.replace(b"\r\n", b"\n", 1), "not a .zoi file"),
        (lambda d: d[:8] + struct.pack("<I", 9) + d[12:], "version 9"),
        (lambda d: d[:-1], "cut short"),
        (lambda d: d + b"x", "cut short or changed"),
        (lambda d: d[:70] + b"!" + d[71:], "checksum"),
        (lambda d: d[:24] + struct.pack("<Q", 2**63) + d[32:], "header is damaged"),
        (lambda d: d[:32] + struct.pack("<Q", 64) + d[40:], "header is damaged"),
        (lambda d: sealed(d[:64] + struct.pack("<I", 2**32 - 1) + d[68:]), "larger than the file"),
        (lambda d: sealed(d.replace(b"mixed", b"mi\xffed")), "not UTF-8"),
        (lambda d: sealed(d.replace(b"mixed", b"mi\0ed")), "not UTF-8"),
        (lambda d: sealed(d.replace(b"gather", b"lather")), "no family of kernels named 'lather'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(path, change, message):
    with pytest.raises(ValueError, match=message) as error:
        load(path, change(path.read_bytes()))
    assert "m.zoi" in str(error.value)


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        load(tmp_path / "none.zoi")
    with pytest.raises(ValueError, match="is not a file"):
        load(tmp_path)


def test_every_truncation_is_refused(path):
    data = path.read_bytes()
    for size in [*range(0, len(data), 7), len(data) - 1]:
        with pytest.raises(ValueError, match=r"m\.zoi"):
            load(path, data[:size])
        if 64 <= size < len(data) - 64:  # the last constant ends with padding
            metadata = min(HEADER.unpack(data[:64])[4], size - 64)
            cut = data[:24] + struct.pack("<Q", metadata) + data[32:size]
            with pytest.raises(ValueError, match=r"m\.zoi"):
                load(path, sealed(cut))


def test_damaged_metadata_never_crashes(path):
    data, rng = path.read_bytes(), random.Random(0)
    metadata = HEADER.unpack(data[:64])[4]
    for _ in range(500):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = 64 + rng.randrange(metadata)
            if rng.random() < 0.5:
                broken[at] = rng.choice([0, 1, 127, 128, 255])
            else:
                broken[at : at + 8] = struct.pack("<q", rng.choice([-1, 2**31, 2**62, -(2**63), 3]))
        try:
            load(path, sealed(bytes(broken[: len(data)])))
        except ValueError:
            continue


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_file_is_not_kept_in_memory_beside_the_packed_weights(tmp_path):
    path = tmp_path / "large.zoi"
    _native.Plan(mlp((2048, 2048, 2048))).save(str(path))
    code = """if 1:
        import sys
        from zoi import _native
        plan = _native.Plan.load(sys.argv[1])
        session = _native.Session(plan)
        session.run()
        resident, inside = 0, False
        for line in open("/proc/self/smaps"):
            if "-" in line.split()[0]: inside = line.rstrip().endswith("large.zoi")
            elif inside and line.startswith("Rss:"): resident += int(line.split()[1])
        print(resident)
    """
    found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 256, "kilobytes of 32 MB"
