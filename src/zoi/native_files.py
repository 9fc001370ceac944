"""Where the files for C and C++ lie."""

from __future__ import annotations

from pathlib import Path

from zoi import _native


def prefix() -> Path:
    """The folder that holds `include/zoi.h`, `lib/libzoi.so` and the CMake package: a CMAKE_PREFIX_PATH."""
    return Path(_native.__file__).parent
