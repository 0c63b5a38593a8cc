"""Convolutional networks in int8 on ONNX Runtime, one thread: `isovec optimize --int8 static` beside ONNX Runtime's own
`quantize_static` (QDQ, per channel) of the same graph, calibrated with the same pictures, and beside f32.

    cargo run -p isovec-test-models --example networks FOLDER
    python benches/int8/pictures.py FOLDER --isovec target/release/isovec

The three take turns, in another order in each round. Of a round the fastest of some runs counts, and of all rounds the median of the
quotients to f32. Half of the pictures calibrate, the others are compared.
"""

import argparse
import struct
import subprocess
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

SIDE = 224
# As `networks` writes it into preprocessor_config.json.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def pictures(count):
    """Seeded pictures of large and small squares with noise: `[side, side, 3]`, bytes."""
    random = np.random.default_rng(7)
    for _ in range(count):
        large = np.kron(random.uniform(0, 255, (14, 14, 3)), np.ones((16, 16, 1)))
        small = np.kron(random.uniform(0, 255, (56, 56, 3)), np.ones((4, 4, 1)))
        noise = random.normal(0, 8, (SIDE, SIDE, 3))
        yield np.clip(0.7 * large + 0.3 * small + noise, 0, 255).astype(np.uint8)


def png(pixels):
    """A picture's file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def values(pixels):
    """What the networks read: `[1, 3, side, side]`."""
    scaled = (pixels.astype(np.float32) / 255 - MEAN) / STD
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


class Reader(CalibrationDataReader):
    def __init__(self, inputs):
        self.left = iter(inputs)

    def get_next(self):
        given = next(self.left, None)
        return None if given is None else {"x": given}


def session(model, optimized=None):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if optimized:
        options.optimized_model_filepath = str(optimized)
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def fastest(model, given, runs):
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        model.run(None, {"x": given})
        best = min(best, time.perf_counter() - start)
    return best


def compare(folder, isovec, rounds, runs, place):
    every = list(pictures(32))
    seen, others = every[::2], [values(pixels) for pixels in every[1::2]]
    files = place / "pictures"
    files.mkdir()
    for number, pixels in enumerate(seen):
        (files / f"{number}.png").write_bytes(png(pixels))
    ours = place / "isovec"
    command = [isovec, "optimize", folder, "--int8", "static", "--images", files, "--out", ours, "--engine", "onnxruntime"]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    ready, theirs = place / "ready.onnx", place / "theirs.onnx"
    quant_pre_process(str(folder / "model.onnx"), str(ready), skip_symbolic_shape=True)
    quantize_static(
        str(ready),
        str(theirs),
        Reader([values(pixels) for pixels in seen]),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    models = {"f32": folder / "model.onnx", "isovec": ours / "model.onnx", "quantize_static": theirs}
    sessions = {name: session(model, place / f"{name}.optimized.onnx") for name, model in models.items()}
    times = {name: [] for name in sessions}
    for turn in range(rounds):
        names = list(sessions)
        for name in names[turn % 3 :] + names[: turn % 3]:
            times[name].append(fastest(sessions[name], others[0], runs))
    exact = [sessions["f32"].run(None, {"x": given})[0].ravel() for given in others]
    for name, model in sessions.items():
        found = [model.run(None, {"x": given})[0].ravel() for given in others]
        cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(exact, found)]
        quotients = sorted(f32 / own for f32, own in zip(times["f32"], times[name]))
        kinds = Counter(node.op_type for node in onnx.load(place / f"{name}.optimized.onnx").graph.node)
        print(
            f"{folder.name} {name}: {1e3 * median(times[name]):.2f} ms, {median(quotients):.2f} times as fast as f32 "
            f"({quotients[0]:.2f} to {quotients[-1]:.2f}), cosine of logits {min(cosines):.5f} worst, {np.mean(cosines):.5f} mean, "
            f"{models[name].stat().st_size / 1e6:.2f} MB, {dict(kinds)}",
            flush=True,
        )


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="the folder that `networks` wrote")
    arguments.add_argument("--isovec", type=Path, required=True, help="the program")
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--runs", type=int, default=8, help="runs of a turn")
    asked = arguments.parse_args()
    print(f"ONNX Runtime {ort.__version__}")
    for folder in sorted(path for path in asked.folder.iterdir() if path.is_dir()):
        with tempfile.TemporaryDirectory() as place:
            compare(folder, asked.isovec, asked.rounds, asked.runs, Path(place))


if __name__ == "__main__":
    main()
