"""Tokens get vectors, and texts are compared by them."""

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
    Embedder,
    IncompatibleIndexError,
    IsovecError,
    MultiVectorEmbedder,
    MultiVectorEmbeddings,
    TextError,
    UnsupportedModelError,
)

COLBERT = DATA / "tiny-colbert"
REFERENCE = json.loads((COLBERT / "reference.json").read_text(encoding="utf-8"))
TEXTS = [passage["text"] for passage in REFERENCE["passages"]]
QUERY = REFERENCE["query"]["text"]
NEAR = 1e-6


@pytest.fixture(scope="module")
def embedder() -> MultiVectorEmbedder:
    return MultiVectorEmbedder(COLBERT, config=PORTABLE)


def test_vectors_and_scores_are_those_of_the_reference(engine: dict[str, Any]) -> None:
    embedder = MultiVectorEmbedder(COLBERT, config=engine)
    waited = embedder.embed_passages(TEXTS)
    joined = asyncio.run(wait(embedder))
    assert (len(waited), waited.dimension, waited.form) == (len(TEXTS), embedder.dimension, None)
    for at, passage in enumerate(REFERENCE["passages"]):
        assert waited[at].dtype == np.float32
        np.testing.assert_allclose(waited[at], passage["vectors"], atol=NEAR)
        np.testing.assert_allclose(joined[at], passage["vectors"], atol=NEAR)
    query = embedder.embed_queries([QUERY])
    np.testing.assert_allclose(query[-1], REFERENCE["query"]["vectors"], atol=NEAR)
    (hits,) = waited.search(query, 2)
    scores = [passage["score"] for passage in REFERENCE["passages"]]
    assert [hit.index for hit in hits] == sorted(range(len(scores)), key=lambda at: -scores[at])[:2]
    np.testing.assert_allclose([hit.score for hit in hits], sorted(scores, reverse=True)[:2], atol=1e-5)
    assert len(embedder.embed_passages([])) == 0


async def wait(embedder: MultiVectorEmbedder) -> MultiVectorEmbeddings:
    return await embedder.aembed(TEXTS)


def test_sets_are_saved_made_compact_and_pickled(embedder: MultiVectorEmbedder, tmp_path: Path) -> None:
    index = embedder.embed_passages(TEXTS)
    query = embedder.embed_queries([QUERY])
    for form, atol in ((None, 0), ("int8", 0.1), ("binary", 5)):
        own = index if form is None else index.compact(form)  # type: ignore[arg-type]
        assert own.form == form
        own.save(tmp_path / "index.safetensors")
        for again in (MultiVectorEmbeddings.load(tmp_path / "index.safetensors"), pickle.loads(pickle.dumps(own))):
            np.testing.assert_array_equal(again[1], own[1])
            exact = {hit.index: hit.score for hit in index.search(query)[0]}
            for hit in again.search(query)[0]:
                np.testing.assert_allclose(hit.score, exact[hit.index], atol=atol)


def test_what_is_wrong_is_said(embedder: MultiVectorEmbedder) -> None:
    index = embedder.embed_passages(TEXTS)
    with pytest.raises(IndexError):
        index[len(TEXTS)]
    with pytest.raises(IndexError):
        index[-len(TEXTS) - 1]
    with pytest.raises(TextError):
        embedder.embed_passages(["a", 1])  # type: ignore[list-item]
    with pytest.raises(UnsupportedModelError, match="no vectors of tokens"):
        MultiVectorEmbedder(BERT)
    with pytest.raises(UnsupportedModelError, match="MultiVectorEmbedder"):
        Embedder(COLBERT)
    with pytest.raises(IsovecError):
        MultiVectorEmbeddings.from_bytes(index.to_bytes()[:-1])
    other = MultiVectorEmbedder(COLBERT, config=PORTABLE, max_length=10)
    with pytest.raises(IncompatibleIndexError):
        index.search(other.embed_queries([QUERY]))


def test_a_model_is_pickled(embedder: MultiVectorEmbedder) -> None:
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.embed_passages(TEXTS)[0], embedder.embed_passages(TEXTS)[0])
