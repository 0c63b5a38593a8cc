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

# The folders of the models, by their names.
MODELS = {
    "embeds": "tiny-bert",
    "labels": "tiny-classifier",
    "ranks": "tiny-reranker",
    "words": "tiny-splade",
    "tokens": "tiny-colbert",
}


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address, once it is ready; it is told to stop at the end, and has to end well."""
    models = tmp_path_factory.mktemp("serve") / "models.toml"
    entry = '[[models]]\nsource = "{}"\nname = "{}"\n'
    models.write_text("".join(entry.format((DATA / folder).as_posix(), name) for name, folder in MODELS.items()))
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
        if found and loaded == len(MODELS):
            break
    else:
        pytest.fail(said)
    # A pipe that nobody reads would stop the server at last.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield found
    process.terminate()
    assert process.wait(30) == 0


@pytest.fixture(scope="session")
def names() -> list[str]:
    """The models' names, in the server's order."""
    return list(MODELS)


@pytest.fixture(scope="session")
def url(address: str) -> str:
    return f"http://{address}"
