"""The package as a whole: its types, its errors, what importing it costs."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import isovec
from isovec import _errors, _isovec

ROOT = Path(__file__).parents[1]
PACKAGE = Path(isovec.__file__).parent


def test_types_hold() -> None:
    pytest.importorskip("mypy")
    for target in (["-p", "isovec"], [str(ROOT / "tests")]):
        run = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *target]
        checked = subprocess.run(run, capture_output=True, text=True, cwd=PACKAGE.parent)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_stub_names_what_is_there() -> None:
    stub = ast.parse((PACKAGE / "_isovec.pyi").read_text())
    for node in stub.body:
        if not isinstance(node, ast.ClassDef) or not hasattr(_isovec, node.name):
            continue
        typed = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        own = vars(getattr(_isovec, node.name))
        public = {name for name in own if not name.startswith("_")}
        assert public <= typed, f"{node.name} has no types for {public - typed}"
        assert {name for name in typed if not name.startswith("_")} <= public, node.name
        for item in node.body:
            # `__new__` takes words that are short for knobs, which its types spell out.
            if isinstance(item, ast.FunctionDef) and not item.name.startswith("_") and not item.decorator_list:
                there = list(inspect.signature(own[item.name]).parameters)
                assert [arg.arg for arg in [*item.args.args, *item.args.kwonlyargs]] == there, item.name
    typed_classes = {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    assert {name for name, value in vars(_isovec).items() if inspect.isclass(value)} <= typed_classes


def test_everything_public_says_what_it_does() -> None:
    for name in isovec.__all__:
        value = getattr(isovec, name)
        if inspect.isclass(value):
            assert value.__doc__, name
            for member, method in vars(value).items():
                if not member.startswith("_") and not isinstance(method, (str, int)):
                    assert inspect.getdoc(method), f"{name}.{member}"


def test_kinds_are_those_of_rust() -> None:
    # The npm package's list, which a test there holds to Rust.
    listed = (ROOT.parent / "js" / "ts" / "kinds.ts").read_text()
    kinds = set(re.findall(r'"(\w+)"', listed))
    assert len(kinds) > 30
    assert set(_errors.CLASSES) - kinds == {"Forked"}
    for kind, made in _errors.CLASSES.items():
        error = _errors.of_kind(kind, "a message")
        assert type(error) is made and (str(error), error.kind) == ("a message", kind)
        assert getattr(isovec, made.__name__) is made
        assert _errors.CLASSES[made("a message").kind] is made
    assert isovec.IsovecError("a message").kind in kinds
    other = _errors.of_kind("DeviceLost", "lost")
    assert type(other) is isovec.IsovecError and other.kind == "DeviceLost"


def test_importing_brings_nothing_else(python: Callable[[str], subprocess.Popen[str]]) -> None:
    script = "import sys, isovec; print([name for name in ('asyncio', 'numpy', 'onnxruntime', 'tqdm') if name in sys.modules])"
    said, _ = python(script).communicate(timeout=60)
    assert said == "[]\n"


def test_without_numpy_the_error_is_pythons_own(python: Callable[[str], subprocess.Popen[str]]) -> None:
    script = """
import os, sys
sys.modules["numpy"] = None
import isovec
embedder = isovec.Embedder(os.environ["MODEL"], config={"engine": "portable"})
assert len(embedder.embeddings(["a"])) == 1
try:
    embedder.embed(["a"])
except ImportError as error:
    print("ImportError")
"""
    said, _ = python(script).communicate(timeout=60)
    assert said == "ImportError\n"
