"""Inputs that a trained model answers to. On noise, a detector's output is all but zero, and so is its scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
SAMPLE_RATE = 16000


def voice(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Rows of a voiced, syllable-like sound at 16 kHz: harmonics under three moving formants, with pauses."""
    rows, size = int(np.prod(shape[:-1])), shape[-1]
    t = (np.arange(rows * size) / SAMPLE_RATE + rng.uniform(0, 10))[:, None]
    pitch = 110 + 25 * np.sin(2 * np.pi * 1.3 * t) + 10 * np.sin(2 * np.pi * 3.1 * t)
    phase = np.cumsum(pitch, axis=0) / SAMPLE_RATE
    order = np.arange(1, 30)[None]
    frequency = order * pitch
    formants = (
        (500 + 250 * np.sin(2 * np.pi * 2.1 * t), 120, 1.0),
        (1500 + 500 * np.sin(2 * np.pi * 1.7 * t + 1), 180, 0.6),
        (2600 + 0 * t, 250, 0.2),
    )
    gain = sum(level / (1 + ((frequency - centre) / width) ** 2) for centre, width, level in formants)
    sound = (gain * np.sin(2 * np.pi * order * phase)).sum(axis=1)
    loudness = np.clip(np.sin(2 * np.pi * 3.5 * t[:, 0]) + 0.6, 0, None)
    noise = rng.standard_normal(rows * size)
    return (0.15 * loudness * sound + 0.002 * noise).astype(np.float32).reshape(shape)


def page(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Images [n, 3, h, w] in [-1, 1] of lines of dark strokes on white paper."""
    image = np.ones(shape, np.float32)
    height, width = shape[2:]
    line = 18
    for top in range(4, height - line, 2 * line):
        for left in range(int(rng.integers(4, 12)), width - 12, 7):
            if rng.uniform() < 0.85:
                image[:, :, top : top + line, left : left + int(rng.integers(2, 5))] = -1
                image[:, :, top + int(rng.integers(0, line - 3)) :, left : left + 6][:, :, :3] = -1
    return image + 0.05 * rng.standard_normal(shape).astype(np.float32)
