"""Packages that isovec works with and does not need."""

from __future__ import annotations


def missing(module: str, wanted: str, pip: str) -> ImportError:
    """The error of a module of isovec's whose package is not installed."""
    return ModuleNotFoundError(f"{module} works with {wanted}, which is not installed here: pip install {pip}", name=wanted)
