"""Finds ONNX Runtime where the package `onnxruntime` is installed beside isovec. It is not imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PATTERNS = ("libonnxruntime.so*", "libonnxruntime*.dylib", "onnxruntime.dll")
"""The library's name on Linux, macOS and Windows; Linux and macOS add its version."""


def find_library() -> str | None:
    """The path of the library, if there is one."""
    try:
        found = importlib.util.find_spec("onnxruntime")
    except ValueError:
        # A module that was made by hand, and has no specification.
        return None
    for folder in (found and found.submodule_search_locations) or ():
        for pattern in PATTERNS:
            for library in sorted(Path(folder, "capi").glob(pattern)):
                return str(library)
    return None
