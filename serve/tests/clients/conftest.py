"""A real server with the small models of this repository, on a free port of loopback."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "tests" / "data"

MODELS = f"""
[[models]]
source = "{(DATA / "tiny-bert").as_posix()}"
name = "embeds"
[[models]]
source = "{(DATA / "tiny-classifier").as_posix()}"
name = "labels"
[[models]]
source = "{(DATA / "tiny-reranker").as_posix()}"
name = "ranks"
[[models]]
source = "{(DATA / "tiny-splade").as_posix()}"
name = "words"
[[models]]
source = "{(DATA / "tiny-colbert").as_posix()}"
name = "tokens"
"""


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address, once it is ready; it is told to stop at the end, and has to end well."""
    models = tmp_path_factory.mktemp("serve") / "models.toml"
    models.write_text(MODELS)
    program = os.environ["ISOVEC_TEST_PROGRAM"]
    options = ["serve", "--models", str(models), "--engine", "portable", "--port", "0", "--log", "json"]
    process = subprocess.Popen([program, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    found, loaded = None, 0
    for line in process.stderr:
        said += line
        fields = json.loads(line) if line.startswith("{") else {}
        found = fields.get("address", found)
        loaded += fields.get("message") == "the model is loaded"
        if found and loaded == 5:
            break
    else:
        pytest.fail(said)
    # A pipe that nobody reads would stop the server at last.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield found
    process.terminate()
    assert process.wait(30) == 0


@pytest.fixture(scope="session")
def url(address: str) -> str:
    return f"http://{address}"
