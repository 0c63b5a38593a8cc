"""Texts get weights of words."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BERT, DATA, PORTABLE
from isovec import (
    ConfigError,
    Embedder,
    Embeddings,
    IsovecError,
    SparseEmbedder,
    SparseEmbeddings,
    SparseVector,
    TextError,
    UnsupportedModelError,
    Word,
)

SPLADE = DATA / "tiny-splade"
REFERENCE = json.loads((SPLADE / "reference.json").read_text(encoding="utf-8"))
TEXTS = [text["text"] for text in REFERENCE["texts"]]
NEAR = 1e-5


def dense(vector: SparseVector) -> np.ndarray[Any, np.dtype[np.float64]]:
    assert vector.indices.dtype == np.uint32 and vector.values.dtype == np.float32
    assert (np.diff(vector.indices.astype(np.int64)) > 0).all() and (vector.values > 0).all()
    weights = np.zeros(REFERENCE["vocabulary_size"])
    weights[vector.indices] = vector.values
    return weights


@pytest.fixture(scope="module")
def embedder() -> SparseEmbedder:
    return SparseEmbedder(SPLADE, config=PORTABLE)


def test_weights_are_those_of_the_reference(engine: dict[str, Any]) -> None:
    embedder = SparseEmbedder(SPLADE, config=engine)
    assert embedder.vocabulary_size == REFERENCE["vocabulary_size"]
    waited = embedder.embed(TEXTS)
    joined = asyncio.run(wait(embedder))
    for text, one, other in zip(REFERENCE["texts"], waited, joined):
        np.testing.assert_allclose(dense(one), text["weights"], atol=NEAR)
        np.testing.assert_allclose(dense(other), text["weights"], atol=NEAR)
    assert len(embedder.embed_passages(TEXTS)) == len(TEXTS)
    assert embedder.embed([]) == []


async def wait(embedder: SparseEmbedder) -> list[SparseVector]:
    return await embedder.aembed(TEXTS)


def test_the_largest_weights_and_their_words(embedder: SparseEmbedder) -> None:
    (few,) = embedder.embed(TEXTS[:1], top_k=3)
    assert len(few.indices) == 3
    words = embedder.words(few)
    assert type(words[0]) is Word and [word.index for word in words] != []
    assert [word.weight for word in words] == sorted(few.values.tolist(), reverse=True)
    assert embedder.words(few, 1) == words[:1]
    prompted = embedder.embed_queries(["dog"])[0]
    np.testing.assert_allclose(dense(prompted), dense(embedder.embed(["the query dog"])[0]), atol=NEAR)


def test_what_is_wrong_is_said(embedder: SparseEmbedder) -> None:
    with pytest.raises(ConfigError, match="top_k is 0"):
        embedder.embed(TEXTS, top_k=0)
    with pytest.raises(TextError):
        embedder.embed(["a", 1])  # type: ignore[list-item]
    with pytest.raises(UnsupportedModelError, match="BertForMaskedLM"):
        SparseEmbedder(BERT)
    with pytest.raises(UnsupportedModelError, match="SparseEmbedder"):
        Embedder(SPLADE)


def test_it_is_pickled(embedder: SparseEmbedder) -> None:
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.embed(TEXTS[:1])[0].indices, embedder.embed(TEXTS[:1])[0].indices)


def test_a_set_is_searched_saved_and_handed_over(embedder: SparseEmbedder, tmp_path: Path) -> None:
    found = embedder.embeddings(TEXTS)
    rows = embedder.embed(TEXTS)
    assert (len(found), found.vocabulary_size) == (len(TEXTS), embedder.vocabulary_size)
    for at, row in enumerate(rows):
        np.testing.assert_array_equal(dense(found[at]), dense(row))
    np.testing.assert_array_equal(dense(found[-1]), dense(rows[-1]))
    with pytest.raises(IndexError):
        found[len(TEXTS)]
    queries = embedder.embeddings(["dog"], prompt="query", top_k=8)
    assert len(queries[0].indices) == 8
    (hits,) = found.search(queries, 2)
    scores = [float(dense(row) @ dense(queries[0])) for row in rows]
    assert [hit.index for hit in hits] == sorted(range(len(rows)), key=lambda at: -scores[at])[:2]
    assert len(found.top_k(3)[0].values) == 3

    path = tmp_path / "words.safetensors"
    found.save(path)
    assert path.read_bytes() == found.to_bytes()
    for read in (SparseEmbeddings.load(path), pickle.loads(pickle.dumps(found))):
        assert read.to_bytes() == found.to_bytes()
    with pytest.raises(IsovecError, match="SparseEmbeddings"):
        Embeddings.load(path)
    with pytest.raises(IsovecError):
        SparseEmbeddings.from_bytes(path.read_bytes()[:-1])


def test_arrow_sees_the_numbers_where_they_lie(embedder: SparseEmbedder) -> None:
    pa = pytest.importorskip("pyarrow")
    found = embedder.embeddings(TEXTS)
    array = pa.array(found)
    for name, kind in (("indices", pa.uint32()), ("values", pa.float32())):
        assert array.type.field(name).type == pa.list_(pa.field("item", kind, nullable=False))
    rows = embedder.embed(TEXTS)
    del found
    assert array.to_pylist() == [{"indices": row.indices.tolist(), "values": row.values.tolist()} for row in rows]
    assert len(pa.array(embedder.embeddings([]))) == 0
