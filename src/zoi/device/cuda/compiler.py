"""CUDA C++ to machine code, by NVRTC (its wheel) or nvcc, kept on disk.

The key of a kept cubin holds the text of the source and of all that it includes, the definitions, the architecture, and
the compiler with its version, so nothing stale is ever loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from zoi.device.cuda.errors import CompileError

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
_LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12")


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and where it came from."""

    image: bytes
    arch: str
    compiler: str
    source_hash: str


def compile_cuda(
    source: Path | str, arch: str, defines: Mapping[str, str | int] | None = None, compiler: str = "auto"
) -> Cubin:
    """Compiles CUDA C++ ahead of use.

    Args:
        source: A file, or the text itself.
        arch: For example `sm_90a`.
        defines: Macros that specialise the kernel.
        compiler: `nvrtc`, `nvcc`, or `auto`: the first of the two that is installed.
    """
    text = source.read_text() if isinstance(source, Path) else source
    folder = source.parent if isinstance(source, Path) else None
    options = [f"-D{name}={value}" for name, value in sorted((defines or {}).items())]
    name, version = _choose(compiler)
    whole = "\n".join([text, *_included(text, folder)])
    source_hash = hashlib.sha256("\n".join([whole, *options]).encode()).hexdigest()
    key = hashlib.sha256("\n".join([source_hash, arch, name, version]).encode()).hexdigest()
    build = _nvrtc if name == "nvrtc" else _nvcc
    image = disk_cache(key, lambda: build(text, folder, arch, options))
    return Cubin(image, arch, f"{name} {version}", source_hash[:16])


def disk_cache(key: str, make: Callable[[], bytes]) -> bytes:
    """What was kept under this key; made and kept where there is nothing."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zoi" / "cubin"
    path = folder / key
    try:
        return path.read_bytes()
    except OSError:
        pass
    image = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(image)
        Path(file.name).replace(path)
    except OSError:  # a read-only or full disk costs time at the next start, nothing else
        pass
    return image


def available_compilers() -> dict[str, str]:
    """Name -> version of each compiler that is installed."""
    found = {}
    if library := _nvrtc_library():
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        found["nvrtc"] = f"{major.value}.{minor.value} {_wheel_version()}".strip()
    if path := _nvcc_path():
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        match = re.search(r"V(\d+\.\d+\.\d+)", told)
        found["nvcc"] = match.group(1) if match else "unknown"
    return found


@lru_cache(maxsize=4)
def _choose(compiler: str) -> tuple[str, str]:
    found = available_compilers()
    for name in ("nvrtc", "nvcc") if compiler == "auto" else (compiler,):
        if name in found:
            return name, found[name]
    raise CompileError(
        f"no CUDA compiler ({compiler}): install the wheel nvidia-cuda-nvrtc, or nvcc of CUDA 12 or later."
    )


def _included(text: str, folder: Path | None) -> list[str]:
    parts: list[str] = []
    seen: set[Path] = set()

    def follow(text: str, folder: Path | None) -> None:
        for name in _INCLUDE.findall(text):
            path = ((folder or Path()) / name).resolve()
            if path not in seen and path.is_file():
                seen.add(path)
                inner = path.read_text()
                parts.append(inner)
                follow(inner, path.parent)

    follow(text, folder)
    return parts


def _nvcc_path() -> str | None:
    default = Path("/usr/local/cuda/bin/nvcc")
    return shutil.which("nvcc") or (str(default) if default.exists() else None)


def _nvcc(text: str, folder: Path | None, arch: str, options: list[str]) -> bytes:
    path = _nvcc_path()
    assert path
    number = arch.removeprefix("sm_")
    with tempfile.TemporaryDirectory() as scratch:
        source, cubin = Path(scratch) / "kernel.cu", Path(scratch) / "kernel.cubin"
        source.write_text(text)
        target = f"-gencode=arch=compute_{number},code=sm_{number}"
        include = [f"-I{folder}"] if folder else []
        command = [path, "-cubin", target, "-std=c++17", "-O3", *include, *options, "-o", str(cubin), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"nvcc failed for {arch}:\n{done.stderr[-4000:]}")
        return cubin.read_bytes()


@lru_cache(maxsize=1)
def _nvrtc_library() -> ctypes.CDLL | None:
    import importlib.util

    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    # NVRTC opens its second library by name alone, so that one has to be in the process before it.
    for helper in [p for root in roots for p in root.glob("*/lib/libnvrtc-builtins.so.*")]:
        try:
            ctypes.CDLL(str(helper), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    paths = [str(p) for root in roots for name in _LIBRARIES for p in root.glob(f"*/lib/{name}")]
    for path in [*paths, *_LIBRARIES]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _wheel_version() -> str:
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _nvrtc(text: str, folder: Path | None, arch: str, options: list[str]) -> bytes:
    library = _nvrtc_library()
    assert library
    program = ctypes.c_void_p()

    def call(name: str, *arguments: object) -> None:
        code = getattr(library, name)(*arguments)
        if code:
            library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise CompileError(f"{name}: {library.nvrtcGetErrorString(code).decode()}")

    call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    try:
        flags = [f"--gpu-architecture={arch}", "-std=c++17", "-default-device", *options]
        flags += [f"-I{folder}"] if folder else []
        array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        failed = library.nvrtcCompileProgram(program, len(flags), array)
        if failed:
            raise CompileError(f"NVRTC failed for {arch}:\n{_fetch(library, program, 'ProgramLog').decode()[-4000:]}")
        return _fetch(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _fetch(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw
