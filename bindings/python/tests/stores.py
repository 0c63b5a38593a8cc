"""What the tests of vector stores share: vectors, their right order, and what the program writes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from conftest import BERT, DATA, PORTABLE, program
from isovec import (
    Embedder,
    Embeddings,
    Hit,
    MultiVectorEmbedder,
    MultiVectorEmbeddings,
    SparseEmbedder,
    SparseEmbeddings,
    SparseVector,
)

MODEL = os.environ.get("ISOVEC_TEST_MODEL")
FOLDER = Path(MODEL) if MODEL and Path(MODEL).is_dir() else BERT
WHO = ["the dog", "a cat", "money", "the bank", "rain", "the river", "a child", "the queen"]
WHAT = ["has a tail", "sleeps by the window", "fell after the news", "is expected tomorrow", "runs in the park", "was here", "is very old", "never ends"]
TEXTS = [f"{who} {what}" for who in WHO for what in WHAT]
ASKED = ["who has a tail?", "the weather of tomorrow", "a river bank", "sleep"]
K = 10
"""Hits that are compared."""


Row = TypeVar("Row", covariant=True)


class Rows(Protocol[Row]):
    """A set of one row for each text."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Row: ...


def each(rows: Rows[Row]) -> Iterator[Row]:
    """The rows one by one."""
    return (rows[at] for at in range(len(rows)))


@functools.cache
def dense() -> tuple[Embeddings, Embeddings]:
    """Passages, and queries."""
    embedder = Embedder(FOLDER, config=PORTABLE)
    assert embedder.metric == "cosine"
    return embedder.embeddings(TEXTS, prompt="passage"), embedder.embeddings(ASKED, prompt="query")


@functools.cache
def sparse() -> tuple[SparseEmbeddings, SparseEmbeddings]:
    embedder = SparseEmbedder(DATA / "tiny-splade", config=PORTABLE)
    return embedder.embeddings(TEXTS, prompt="passage"), embedder.embeddings(ASKED, prompt="query", top_k=12)


@functools.cache
def tokens() -> tuple[MultiVectorEmbeddings, MultiVectorEmbeddings]:
    embedder = MultiVectorEmbedder(DATA / "tiny-colbert", config=PORTABLE)
    return embedder.embed_passages(TEXTS), embedder.embed_queries(ASKED)


def same_order(own: Callable[[int], list[list[Hit]]], found: Sequence[Sequence[int]], near: float = 1e-6) -> None:
    """The stores' ids are isovec's first hits. Hits whose scores are that near may change places."""
    every, first = own(len(TEXTS)), own(K)
    assert len(found) == len(ASKED)
    for ids, all_hits, hits in zip(found, every, first, strict=True):
        assert len(set(ids)) == len(ids) == len(hits) > 0
        score = {hit.index: hit.score for hit in all_hits}
        np.testing.assert_allclose([score[at] for at in ids], [hit.score for hit in hits], rtol=near, atol=near)


def by_signs(dense: tuple[Embeddings, Embeddings], near: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> None:
    """`near` are rows with the fewest signs that differ, of which `found` are the best in f32."""
    index, queries = dense
    differ = (queries.numpy()[:, None] > 0) != (index.numpy()[None] > 0)
    for row, candidates, best, scores in zip(differ.sum(axis=2), near, found, queries.numpy() @ index.numpy().T, strict=True):
        # Which ones of those that differ in equally many does not matter.
        assert len(set(candidates)) == 4 * K and sorted(row[list(candidates)]) == sorted(row)[: 4 * K]
        wanted = np.sort(scores[list(candidates)])[::-1][:K]
        np.testing.assert_allclose(scores[list(best)], wanted, atol=1e-6)


def pair(vector: SparseVector) -> tuple[list[int], list[float]]:
    """Words and their weights."""
    return vector.indices.tolist(), vector.values.tolist()


def f32(values: Sequence[float]) -> list[float]:
    """Numbers that a store gives as decimals, as those of f32 that they stand for."""
    return [float(np.float32(value)) for value in values]


AWKWARD = ['"quoted", and a comma', "a\ttab and a \\ backslash", *TEXTS[:3]]


def expected() -> Any:
    return Embedder(BERT, config=PORTABLE).embed_passages(AWKWARD)


def embed(folder: Path, name: str) -> Path:
    """What the program writes."""
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in AWKWARD), encoding="utf-8")
    command = [program(), "embed", "--model", str(BERT), "--engine", "portable", "--role", "passage", "--file", "texts.jsonl"]
    run = subprocess.run([*command, "--out", name], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / name
