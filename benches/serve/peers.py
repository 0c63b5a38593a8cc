"""Throughput of `isovec serve` beside infinity and a FastAPI server: many clients that ask for one short text each.

    python3 -m venv peers && peers/bin/pip install -r benches/serve/peers.txt     # some 6 GB: PyTorch with its GPU libraries
    peers/bin/python benches/serve/peers.py export MODEL EXPORTED
    peers/bin/python benches/serve/peers.py PROGRAM MODEL EXPORTED
    peers/bin/python benches/serve/peers.py PROGRAM MODEL gpu        # on an NVIDIA GPU, beside PyTorch: needs only fastapi and wrk

PROGRAM is `isovec` (`cargo build --release -p isovec-cli`), MODEL the folder of all-MiniLM-L6-v2 as it is published, and EXPORTED
what the second line wrote by PyTorch: both peers read the same ONNX file. All answer `POST …/embeddings` in the dialect of OpenAI,
one after the other in every round, with no other server running. `wrk` asks, from another process (Debian's package `wrk`). Texts are
of 6 to 12 words, and no cache of vectors is on.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

CLIENTS = 64
ROUNDS = 3
WARM_SECONDS = 4
SECONDS = 10
PORT = 18_431
HERE = Path(__file__).parent
WORDS = re.findall(r"[a-z]{3,}", Path(__file__).read_text())


@dataclass
class Contestant:
    name: str
    command: list[str]
    path: str
    health: str
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "."


def contestants(program: str, model: str, exported: str) -> list[Contestant]:
    def isovec(engine: str, *more: str) -> Contestant:
        options = ["--model", model, "--name", "m", "--port", str(PORT), "--engine", engine, *more]
        name = ", ".join(["isovec", engine, *more[1:]])
        return Contestant(name, [program, "serve", *options], "/v1/embeddings", "/health/ready")

    def fastapi(name: str, folder: str, **environment: str) -> Contestant:
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(HERE), "_fastapi:app", "--port", str(PORT), "--no-access-log"]
        return Contestant(f"FastAPI, {name}", command, "/v1/embeddings", "/health", environment | {"MODEL": folder})

    if exported == "gpu":
        return [
            isovec("webgpu"),
            isovec("onnxruntime", "--preset", "gpu"),
            fastapi("sentence-transformers on CUDA", model, DEVICE="cuda"),
            fastapi("the same in f16", model, DEVICE="cuda", HALF="1"),
        ]
    beside = Path(sys.executable).parent
    infinity = [
        # It finds a model's ONNX file by a name that is relative to the folder it runs in.
        *(str(beside / "infinity_emb"), "v2", "--model-id", ".", "--served-model-name", "m", "--pooling-method", "mean"),
        *("--engine", "optimum", "--device", "cpu", "--port", str(PORT), "--no-bettertransformer"),
    ]
    return [
        isovec("portable", "--preset", "high-throughput"),
        isovec("portable"),
        isovec("onnxruntime"),
        Contestant("infinity, optimum", infinity, "/embeddings", "/health", {"DO_NOT_TRACK": "1"}, exported),
        fastapi("sentence-transformers", exported),
    ]


def script(folder: Path, path: str) -> Path:
    """What wrk asks: a thousand bodies in turn."""
    source = random.Random(7)
    texts = [" ".join(source.choices(WORDS, k=source.randint(6, 12))) for _ in range(1000)]
    bodies = ",\n".join(json.dumps(json.dumps({"model": "m", "input": [text]})) for text in texts)
    lua = folder / "ask.lua"
    lua.write_text(
        f"""local bodies = {{{bodies}}}
local at = 0
request = function()
  at = at % #bodies + 1
  return wrk.format("POST", "{path}", {{["Content-Type"] = "application/json"}}, bodies[at])
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("%d %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), e.connect + e.read + e.write + e.timeout + e.status))
end
"""
    )
    return lua


def wait(contestant: Contestant, process: subprocess.Popen[bytes]) -> None:
    while True:
        if process.poll() is not None:
            sys.exit(f"{contestant.name} ended with {process.returncode}; try it by hand: {' '.join(contestant.command)}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{contestant.health}", timeout=1) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)


def ask(lua: Path, seconds: int) -> tuple[float, float, float, int]:
    """Requests a second, p50 and p99 of the latency in milliseconds, and how many failed."""
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--timeout", "30s", "-s", str(lua), f"http://127.0.0.1:{PORT}"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    requests, duration, middle, most, errors = map(int, said.splitlines()[-1].split())
    return (requests - errors) / duration * 1e6, middle / 1e3, most / 1e3, errors


def export(model: str, exported: str) -> None:
    """A copy of the model with `model.onnx`, as PyTorch writes it."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = Path(exported)
    shutil.copytree(model, folder)
    network = AutoModel.from_pretrained(model, attn_implementation="eager").eval()
    inputs = dict(AutoTokenizer.from_pretrained(model)(["two texts", "of two lengths"], padding=True, return_tensors="pt"))
    every = {0: "batch", 1: "tokens"}
    torch.onnx.export(
        network,
        (inputs,),
        str(folder / "model.onnx"),
        input_names=list(inputs),
        output_names=["last_hidden_state"],
        dynamic_axes={name: every for name in [*inputs, "last_hidden_state"]},
        opset_version=17,
        dynamo=False,
    )


def main(program: str, model: str, exported: str) -> None:
    if not shutil.which("wrk"):
        sys.exit("wrk is not on the path: install it (Debian's package `wrk`)")
    all_of_them = contestants(program, model, exported)
    found: dict[str, list[tuple[float, float, float, int]]] = {one.name: [] for one in all_of_them}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(ROUNDS):
            for one in all_of_them:
                lua = script(Path(folder), one.path)
                with open(Path(folder) / "log", "wb") as log:
                    process = subprocess.Popen(one.command, cwd=one.folder, env=os.environ | one.environment, stdout=log, stderr=log)
                    try:
                        wait(one, process)
                        ask(lua, WARM_SECONDS)
                        found[one.name].append(ask(lua, SECONDS))
                    finally:
                        process.terminate()
                        process.wait(60)
                print(f"round {turn + 1}, {one.name}: {found[one.name][-1]}", flush=True)
    print(f"\n| {CLIENTS} clients, one short text each | requests a second | p50, ms | p99, ms | errors | the first to it |")
    print("|---|---|---|---|---|---|")
    first = found[all_of_them[0].name]
    for name, runs in found.items():
        rate, middle, most, errors = (statistics.median(run[at] for run in runs) for at in range(4))
        ratio = statistics.median(mine[0] / theirs[0] for mine, theirs in zip(first, runs))
        print(f"| {name} | {rate:.0f} | {middle:.1f} | {most:.1f} | {errors:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    if sys.argv[1] == "export":
        export(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
