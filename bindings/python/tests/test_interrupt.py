"""Ctrl-C ends a call, and the model goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has another Ctrl-C")

Start = Callable[[str], subprocess.Popen[str]]

# The texts are so many that only an interrupt ends the call before the test's patience.
SCRIPT = """
import os, sys
import isovec
embedder = isovec.Embedder(os.environ["MODEL"], config={"engine": "ENGINE"})
few = embedder.embed(["the dog"] * 100)
texts = [f"the dog has the tail number {at} and it is long" for at in range(3_000_000)]
print("ready", flush=True)
try:
    CALL
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
assert (embedder.embed(["the dog"] * 100) == few).all()
print(embedder.stats()["calls"])
"""


def interrupted(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    try:
        # Long enough for the call to be under way, and it is answered whenever it comes.
        started.wait(0.3)
    except subprocess.TimeoutExpired:
        pass
    started.send_signal(signal.SIGINT)
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 0, said
    return said


@pytest.mark.parametrize("name", ["portable", "onnxruntime"])
def test_a_long_call_is_cancelled(python: Start, name: str) -> None:
    said = interrupted(python(SCRIPT.replace("CALL", "embedder.embed(texts)").replace("ENGINE", name)))
    assert said.startswith("interrupted\n")
    assert "'cancelled': 1" in said


def test_a_stream_is_cancelled(python: Start) -> None:
    call = "for vector in embedder.embed_stream(texts): pass"
    assert interrupted(python(SCRIPT.replace("CALL", call).replace("ENGINE", "portable"))).startswith("interrupted\n")


def test_a_slow_reader_is_interrupted_at_once(python: Start) -> None:
    call = """
    def slowly():
        import time
        yield "a"
        while True:
            time.sleep(60)
            yield "b"
    next(embedder.embed_stream(slowly()))
"""
    said = interrupted(python(SCRIPT.replace("CALL", call).replace("ENGINE", "portable")))
    assert said.startswith("interrupted\n")


def test_another_handler_is_called_and_the_call_goes_on(python: Start) -> None:
    script = """
import os, signal
import isovec
embedder = isovec.Embedder(os.environ["MODEL"], config={"engine": "portable"})
signal.signal(signal.SIGINT, lambda *_: print("heard", flush=True))
texts = ["the dog has a tail"] * 100_000
print("ready", flush=True)
vectors = embedder.embed(texts)
print(vectors.shape)
"""
    assert interrupted(python(script)) == "heard\n(100000, 32)\n"


def test_the_interpreter_ends_in_the_middle(python: Start) -> None:
    script = """
import asyncio, os, threading
import isovec
embedder = isovec.Embedder(os.environ["MODEL"], config={"engine": "portable"})
texts = ["the dog has a tail"] * 1_000_000
async def main():
    tasks = [asyncio.ensure_future(embedder.aembed(texts)) for _ in range(2)]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    os.environ["LEFT"] = str(len(tasks))
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
threading.Thread(target=embedder.embed, args=(texts,), daemon=True).start()
# The loop is never closed, the tasks are never awaited, and a thread computes.
"""
    started = python(script)
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 0, said
    assert said.startswith("ready\n")
    assert "panicked" not in said and "Fatal" not in said, said
