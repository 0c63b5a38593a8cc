"""Vectors as lists, which is what other libraries take."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._isovec import Vectors


def row(vector: Vectors) -> list[float]:
    """The components of a vector."""
    values: list[float] = vector.tolist()
    return values


def rows(vectors: Vectors) -> list[list[float]]:
    """The components of each vector."""
    values: list[list[float]] = vectors.tolist()
    return values
