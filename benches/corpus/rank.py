"""Which passages of the corpus are nearest to which queries under all-MiniLM-L6-v2 in float64, straight
from the weights, without an inference runtime: what `cargo xtask bench retrieval` holds rankings to.

Usage: rank.py MODEL CORPUS, a model's folder and corpus.txt. Writes a line for each query: the places
of the nearest passages among the passages, each with its cosine. Needs numpy, scipy and tokenizers; takes
some five minutes of one core."""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import erf
from tokenizers import Tokenizer

QUERIES, PASSAGES, NEAREST, TOKENS = 200, 5000, 12, 256


def chosen(texts):
    """As benches/native/benches/retrieval.rs chooses: short sentences ask, the first others answer."""
    def asks(text):
        return text.endswith(".") and 5 <= len(text.split(" ")) <= 20

    queries = [place for place, text in enumerate(texts) if asks(text)][:QUERIES]
    held_out = set(queries)
    passages = [place for place in range(len(texts)) if place not in held_out][:PASSAGES]
    return [texts[place] for place in queries], [texts[place] for place in passages]


def tensors(path):
    """https://github.com/huggingface/safetensors#format, widened to float64."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = (8 + size + offset for offset in entry["data_offsets"])
            yield name, np.frombuffer(data[start:end], "<f4").reshape(entry["shape"]).astype(np.float64)


class Model:
    def __init__(self, folder):
        config = json.loads((folder / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.weights = dict(tensors(folder / "model.safetensors"))

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def __call__(self, ids):
        """The vectors of texts of one length; `ids`: `[texts, tokens]`."""
        texts, tokens = ids.shape
        table = lambda kind: self.weights[f"embeddings.{kind}_embeddings.weight"]
        x = table("word")[ids] + table("position")[:tokens] + table("token_type")[0]
        x = self.norm("embeddings.LayerNorm", x)
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}"
            split = lambda y: y.reshape(texts, tokens, self.heads, -1).transpose(0, 2, 1, 3)
            query, key, value = (split(self.linear(f"{at}.attention.self.{part}", x)) for part in ("query", "key", "value"))
            scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(query.shape[-1])
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            attended = (scores / scores.sum(-1, keepdims=True) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
            x = self.norm(f"{at}.attention.output.LayerNorm", self.linear(f"{at}.attention.output.dense", attended) + x)
            inner = self.linear(f"{at}.intermediate.dense", x)
            inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
            x = self.norm(f"{at}.output.LayerNorm", self.linear(f"{at}.output.dense", inner) + x)
        mean = x.mean(1)
        return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


def vectors(model, tokenizer, texts):
    ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    out = np.empty((len(texts), 384))
    for length in sorted({len(one) for one in ids}):
        rows = [row for row, one in enumerate(ids) if len(one) == length]
        for start in range(0, len(rows), 16):
            some = rows[start : start + 16]
            out[some] = model(np.array([ids[row] for row in some]))
    return out


def main():
    folder, corpus = map(Path, sys.argv[1:])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    queries, passages = chosen(corpus.read_text(encoding="utf-8").rstrip("\n").split("\n"))
    model = Model(folder)
    scores = vectors(model, tokenizer, queries) @ vectors(model, tokenizer, passages).T
    for row in scores:
        nearest = np.argsort(-row, kind="stable")[:NEAREST]
        print(" ".join(f"{place}:{row[place]:.9f}" for place in nearest))


main()
