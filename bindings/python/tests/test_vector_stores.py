"""Stores get vectors bit for bit, and rank them as isovec does. Each is a real one: a process, or its own library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from conftest import BERT, DATA, PORTABLE, program
from isovec import (
    CompactEmbeddings,
    ConfigError,
    Embedder,
    Embeddings,
    Hit,
    IncompatibleIndexError,
    MultiVectorEmbedder,
    MultiVectorEmbeddings,
    SparseEmbedder,
    SparseEmbeddings,
    SparseVector,
    fuse,
)

MODEL = os.environ.get("ISOVEC_TEST_MODEL")
FOLDER = Path(MODEL) if MODEL and Path(MODEL).is_dir() else BERT
WHO = ["the dog", "a cat", "money", "the bank", "rain", "the river", "a child", "the queen"]
WHAT = ["has a tail", "sleeps by the window", "fell after the news", "is expected tomorrow", "runs in the park"]
TEXTS = [f"{who} {what}" for who in WHO for what in WHAT]
ASKED = ["who has a tail?", "the weather of tomorrow", "a river bank", "sleep"]
K = 10


@pytest.fixture(scope="module")
def dense() -> tuple[Embeddings, Embeddings]:
    """Passages, and queries."""
    embedder = Embedder(FOLDER, config=PORTABLE)
    assert embedder.metric == "cosine"
    return embedder.embeddings(TEXTS, prompt="passage"), embedder.embeddings(ASKED, prompt="query")


@pytest.fixture(scope="module")
def sparse() -> tuple[SparseEmbeddings, SparseEmbeddings]:
    embedder = SparseEmbedder(DATA / "tiny-splade", config=PORTABLE)
    return embedder.embeddings(TEXTS, prompt="passage"), embedder.embeddings(ASKED, prompt="query", top_k=12)


@pytest.fixture(scope="module")
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


def by_signs(index: Embeddings, queries: Embeddings, k: int = K) -> list[list[Hit]]:
    """What isovec finds among the 4 k rows with the fewest signs that differ, scored again in f32."""
    signs = index.compact("binary")
    ones = [Embeddings.from_bytes(part.to_bytes()) for part in each(queries)]
    return [index.rescored(one, signs.search(one, 4 * k)[0], k) for one in ones]


def each(queries: Embeddings) -> Iterable[Embeddings]:
    """Sets of one query."""
    embedder = Embedder(FOLDER, config=PORTABLE)
    return (embedder.embeddings([text], prompt="query") for text in ASKED)


def test_the_texts_have_vectors_of_their_own(dense: Any, sparse: Any) -> None:
    index, _ = dense
    assert len(np.unique(index.numpy(), axis=0)) == len(TEXTS) > 3 * K
    assert len({sparse[0][at].values.tobytes() for at in range(len(TEXTS))}) > 3 * K
