"""The Python contestant of `cargo xtask bench peers`, which starts it, waits for "ready", writes a
line, and reads what came of all texts: the seconds that they took and the peak of this process's
memory in MiB. The vectors go to a file, as float32.

Usage: _corpus.py FOLDER TEXTS VECTORS. The folder has model.onnx (no pooling in it) and
tokenizer files; the texts stand one a line."""

import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

MAX_TOKENS = 512


def as_sentence_transformers(folder):
    """What `SentenceTransformer.encode` does with its ONNX backend and its defaults (version 5):
    texts sorted by their characters, longest first; batches of 32, each padded to its longest;
    mean pooling and normalisation after the run."""
    tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx")

    def embed(texts):
        order = np.argsort([-len(text) for text in texts], kind="stable")
        vectors = np.empty((len(texts), 384), np.float32)
        for start in range(0, len(texts), 32):
            places = order[start : start + 32]
            rows = tokenizer.encode_batch([texts[place] for place in places])
            mask = np.array([row.attention_mask for row in rows])
            (states,) = session.run(
                None,
                {
                    "input_ids": np.array([row.ids for row in rows]),
                    "attention_mask": mask,
                    "token_type_ids": np.array([row.type_ids for row in rows]),
                },
            )
            weights = mask[:, :, None].astype(np.float32)
            means = (states * weights).sum(1) / weights.sum(1)
            vectors[places] = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors

    return embed


def peak():
    """The most memory that this process has had, in MiB."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def main():
    folder, texts, vectors = sys.argv[1:]
    embed = as_sentence_transformers(folder)
    texts = Path(texts).read_text(encoding="utf-8").splitlines()
    embed(texts[:64])
    print(f"ready sentence-transformers' batching, Python onnxruntime {onnxruntime.__version__}", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    result = embed(texts)
    seconds = time.perf_counter() - started
    result.astype("<f4").tofile(vectors)
    print(seconds, peak(), flush=True)


main()
