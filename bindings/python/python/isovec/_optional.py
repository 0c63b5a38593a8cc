"""Packages that isovec works with and does not need."""

from __future__ import annotations

import sys


def missing(module: str, pip: str, error: ImportError) -> ImportError:
    """The error of a module of isovec's that could not import a package, with the command that installs it."""
    name = error.name or "a package"
    return ModuleNotFoundError(
        f"{module} needs {name}, which {sys.executable} could not import ({error}): pip install {pip}", name=error.name
    )
