"""Kernel families: one folder a meaning, its variants side by side."""
