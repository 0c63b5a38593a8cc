"""A forked process says that it was forked, and neither waits nor ends for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

Start = Callable[[str], subprocess.Popen[str]]


def run(started: subprocess.Popen[str]) -> str:
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 0, said
    return said


@pytest.mark.parametrize("name", ["portable", "onnxruntime"])
def test_a_call_after_a_fork_is_an_error(python: Start, name: str) -> None:
    script = """
import asyncio, os, sys
import isovec
embedder = isovec.Embedder(os.environ["MODEL"], config={"engine": "ENGINE"})
before = embedder.embed(["the dog has a tail"] * 500)
asyncio.run(embedder.aembed(["the dog"]))
stream = embedder.embed_stream(["a", "b"])
next(stream)
child = os.fork()
if child == 0:
    for call in (
        lambda: embedder.embed(["a"]),
        lambda: embedder.embed(["a"] * 5000),
        lambda: asyncio.run(embedder.aembed(["a"])),
        lambda: next(stream),
        lambda: embedder.stats(),
        lambda: isovec.Embedder(os.environ["MODEL"]),
        lambda: isovec.Classifier(os.environ["MODEL"]),
    ):
        try:
            call()
        except isovec.ForkError as error:
            assert error.kind == "Forked" and str(os.getppid()) in str(error)
        else:
            os._exit(1)
    # What needs no thread is still there, and the end of the interpreter waits for none.
    assert embedder.dimension == 32 and repr(embedder)
    del embedder, stream
    # The end of a forked process waits for ever in ONNX Runtime's own exit handlers, also without isovec.
    (os._exit if "ENGINE" == "onnxruntime" else sys.exit)(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert (embedder.embed(["the dog has a tail"] * 500) == before).all()
print("well")
"""
    assert run(python(script.replace("ENGINE", name))).endswith("well\n")


def test_a_model_is_loaded_after_a_fork(python: Start) -> None:
    script = """
import os, sys
import isovec
child = os.fork()
embedder = isovec.Embedder(os.environ["MODEL"], config={"engine": "portable"})
vectors = embedder.embed(["the dog has a tail"] * 500)
if child:
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    print("well")
"""
    assert run(python(script)) == "well\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_model_goes_to_a_worker_by_its_source(python: Start, method: str) -> None:
    if method == "forkserver" and sys.platform == "win32":
        pytest.skip("there is no forkserver here")
    script = f"""
import multiprocessing, os
import isovec
if __name__ == "__main__":
    embedder = isovec.Embedder(os.environ["MODEL"], config={{"engine": "portable"}}, dimension=16)
    context = multiprocessing.get_context({method!r})
    with context.Pool(1) as pool:
        there = pool.apply(isovec.Embedder.embed, (embedder, ["the dog", "a bank"]))
    assert there.tobytes() == embedder.embed(["the dog", "a bank"]).tobytes()
    print("well")
"""
    assert run(python(script)) == "well\n"
