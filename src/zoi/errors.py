"""The errors that zoi raises. Each names the model and the place, what was found, what is supported and what to do."""

from __future__ import annotations


class ZoiError(Exception):
    """Every error of zoi's own."""


class ModelError(ZoiError, ValueError):
    """The model itself is not well formed, or its shapes cannot be found out."""


class UnsupportedOperator(ZoiError, NotImplementedError):
    """The model has an operator, or a form of one, that no kernel takes."""


class InputError(ZoiError, ValueError):
    """An argument does not fit the model: a wrong name, shape or type, one missing, or one too many."""
