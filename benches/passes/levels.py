"""What each pass of `isovec optimize --level` saves on exports as they come, one thread: nodes, bytes, and the times of loading and
running on ONNX Runtime without its own optimisations (level 0) and with all of them (level 99).

    cargo build --release -p isovec-optimize --example simplify
    python benches/passes/levels.py target/release/examples/simplify MODEL.onnx... --size 2x32

The original and what passes made of it take turns, in another order in each round. Passes are added one after another, in the order in
which they are made. Of a round the fastest of some runs counts, and of all rounds the median of the quotients, with the least and the
greatest. Values of inputs are seeded.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime as ort

PASSES = "constants shapes identities duplicates layer-norms gelus hard-swishes convolutions layout".split()
LEVELS = {0: ort.GraphOptimizationLevel.ORT_DISABLE_ALL, 99: ort.GraphOptimizationLevel.ORT_ENABLE_ALL}


def session(path, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds(session, size):
    """Seeded values; what a model leaves open is taken from the end of `size`."""
    random = np.random.default_rng(3)
    made = {}
    for given in session.get_inputs():
        shape = list(given.shape)
        own = size[-len(shape) :] if len(size) >= len(shape) else [1] * (len(shape) - len(size)) + size
        shape = [extent if isinstance(extent, int) and extent > 0 else own[at] for at, extent in enumerate(shape)]
        if given.type == "tensor(float)":
            made[given.name] = random.standard_normal(shape).astype(np.float32)
        else:
            kind = np.int64 if given.type == "tensor(int64)" else np.int32
            ones = "mask" in given.name or "type" in given.name
            made[given.name] = (np.full(shape, int("mask" in given.name)) if ones else random.integers(100, 200, shape)).astype(kind)
    return made


def fastest(session, given, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, given)
        best = min(best, time.perf_counter() - start)
    return best


def loading(path, level):
    start = time.perf_counter()
    session(path, level)
    return time.perf_counter() - start


def compare(files, size, level, rounds, seconds):
    """For each file: the median quotient of the original's time to its own, with the least and the greatest; the quotient of loading."""
    sessions = [session(path, level) for path in files]
    given = feeds(sessions[0], size)
    wanted = sessions[0].run(None, given)
    apart = []
    for other in sessions:
        pairs = zip(wanted, other.run(None, given))
        apart.append(max(float(np.abs(a - b).max()) / max(float(np.abs(a).max()), 1e-30) for a, b in pairs if a.size))
    runs, loads = [[] for _ in files], [[] for _ in files]
    for turn in range(rounds):
        order = list(range(len(files)))
        order = order[turn % len(order) :] + order[: turn % len(order)]
        times, starts = {}, {}
        for at in order:
            times[at] = fastest(sessions[at], given, seconds)
            starts[at] = loading(files[at], level)
        for at in order:
            runs[at].append(times[0] / times[at])
            loads[at].append(starts[0] / starts[at])
    return [(median(run), min(run), max(run), median(load), far) for run, load, far in zip(runs, loads, apart)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simplify", type=Path)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--size", default="1x128", help="extents of what a model leaves open, from the end")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--alone", action="store_true", help="the levels alone, and not each pass")
    asked = parser.parse_args()
    size = [int(extent) for extent in asked.size.split("x")]
    steps = ["basic", "extended", "all"] if asked.alone else [",".join(PASSES[: at + 1]) for at in range(len(PASSES))]
    for model in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            files, names, told = [model], ["as it is"], [""]
            for at, step in enumerate(steps):
                made = Path(folder) / f"{at}.onnx"
                said = subprocess.run([asked.simplify, model, made, step], check=True, capture_output=True, text=True)
                line = said.stdout.strip().splitlines()[-1]
                # A pass that found nothing leaves the file before it.
                if not asked.alone and ": 0 changes" in line:
                    continue
                files.append(made)
                names.append(step.split(",")[-1])
                told.append(line.split(": ", 1)[1])
            measured = {level: compare(files, size, level, asked.rounds, asked.seconds) for level in LEVELS}
            print(f"\n{model.name}, {asked.size}, ONNX Runtime {ort.__version__}")
            print("| with the passes to | changes | bytes | level 0: run, load | level 99: run, load | farthest, for the largest value |")
            print("|---|---|---|---|---|---|")
            for at, name in enumerate(names):
                cells = []
                for level in LEVELS:
                    run, least, most, load, _ = measured[level][at]
                    cells.append(f"{run:.2f} ({least:.2f} to {most:.2f}), {load:.2f}")
                far = max(measured[level][at][4] for level in LEVELS)
                size_of = os.path.getsize(files[at])
                print(f"| {name} | {told[at]} | {size_of:,} | {cells[0]} | {cells[1]} | {far:.1e} |", flush=True)


if __name__ == "__main__":
    main()
