"""What the tests share: the small models of this repository, on the engines of this machine."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import postgres
from isovec import Embedder

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
BERT = DATA / "tiny-bert"
CLASSIFIER = DATA / "tiny-classifier"
CLIP = DATA / "tiny-clip"

PORTABLE = {"engine": "portable"}

# Spark starts the `python3` of the path otherwise.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@pytest.fixture(scope="session", params=["portable", "onnxruntime"])
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A configuration that names an engine."""
    return {"engine": request.param}


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """A small model on the portable engine."""
    return Embedder(BERT, config=PORTABLE)


@pytest.fixture(scope="session")
def reranker_files() -> dict[str, bytes]:
    """The small classifier with its first label alone, which is a reranker."""
    files = {name: (CLASSIFIER / name).read_bytes() for name in ("tokenizer.json", "model.safetensors", "config.json")}
    weights = files["model.safetensors"]
    start = 8 + int.from_bytes(weights[:8], "little")
    header = json.loads(weights[8:start])
    body = bytearray()
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        if name in ("classifier.weight", "classifier.bias"):
            labels, *row = tensor["shape"]
            end = begin + (end - begin) // labels
            tensor["shape"] = [1, *row]
        tensor["data_offsets"] = [len(body), len(body) + end - begin]
        body += weights[start:][begin:end]
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    config = json.loads(files["config.json"]) | {"id2label": {"0": "LABEL_0"}}
    files["model.safetensors"] = len(head).to_bytes(8, "little") + head + bytes(body)
    files["config.json"] = json.dumps(config).encode()
    return files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the small model, for those who change it."""
    return Path(shutil.copytree(BERT, tmp_path / "model"))


def change_weights(folder: Path) -> None:
    """Makes it another model. The file is replaced, because it may be mapped."""
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    (folder / "other").write_bytes(content)
    (folder / "other").replace(weights)


@pytest.fixture
def python() -> Callable[[str], subprocess.Popen[str]]:
    """Starts a script in a process of its own, with its output in a pipe."""

    def start(script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "MODEL": str(BERT)},
        )

    return start


@pytest.fixture(scope="session")
def _postgres() -> Iterator[dict[str, str]]:
    """One PostgreSQL for all tests."""
    pytest.importorskip("psycopg", exc_type=ImportError)
    pytest.importorskip("pgvector", exc_type=ImportError)
    try:
        with postgres.server() as variables:
            yield variables
    except postgres.Missing as missing:
        pytest.skip(str(missing))


_databases = itertools.count()


@pytest.fixture
def database(_postgres: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty database of a PostgreSQL with pgvector, where libpq finds it by itself."""
    import psycopg

    for variable, value in _postgres.items():
        monkeypatch.setenv(variable, value)
    name = f"test{next(_databases)}"
    with contextlib.closing(psycopg.connect(autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    monkeypatch.setenv("PGDATABASE", name)


@pytest.fixture
def sqlite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module `sqlite3`, or the same with extensions, where this Python was built without them."""
    pytest.importorskip("sqlite_vec")
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    module: ModuleType = pytest.importorskip("pysqlite3", reason="the sqlite3 of this Python loads no extensions, and there is no pysqlite3")
    monkeypatch.setitem(sys.modules, "sqlite3", module)
    return module


def java() -> str | None:
    """Why Spark does not start here; `None` where it does."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if program is None or subprocess.run([program, "-version"], capture_output=True).returncode:
        return "Spark needs Java 17 or newer, and there is no java here"
    return None


def program() -> str:
    """The program `isovec` of the same sources."""
    found = os.environ.get("ISOVEC_TEST_PROGRAM")
    if not found:
        pytest.skip("ISOVEC_TEST_PROGRAM names no program isovec")
    return found
