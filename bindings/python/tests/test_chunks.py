"""Long texts become chunks, and chunks become vectors."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from conftest import BERT, PORTABLE
from isovec import ConfigError, Embedder, TextError

# Characters of one, two, three and four bytes.
LONG = "The dog has a tail. Müller's money is in the bank — 東京 has a river. 😀 A cat sat by the window. " * 4
TEXTS = [LONG, "the dog", "", "  " + LONG[20:] + "\n"]


def test_chunks_are_parts_of_the_text(embedder: Embedder) -> None:
    chunks = embedder.chunk(LONG, max_tokens=24)
    assert len(chunks) > 4
    for chunk in chunks:
        part = LONG[chunk.start : chunk.end]
        assert part == part.strip() and embedder.count_tokens(part) == chunk.tokens <= 24
    words = "".join(LONG[chunk.start : chunk.end] for chunk in chunks)
    assert words.replace(" ", "") == LONG.replace(" ", "")
    # A sentence goes on in no other chunk.
    assert all(LONG[chunk.end - 1] in ".😀" for chunk in chunks)
    by_tokens = embedder.chunk(LONG, by="tokens", max_tokens=24)
    assert len(by_tokens) < len(chunks) and by_tokens != chunks
    overlapping = embedder.chunk(LONG, by="tokens", max_tokens=24, overlap=8)
    assert all(one.end > other.start > one.start for one, other in zip(overlapping, overlapping[1:], strict=False))
    assert embedder.chunk(" \n") == []


def test_every_chunk_has_the_vector_of_its_text(embedder: Embedder) -> None:
    cases: list[dict[str, Any]] = [{}, {"overlap": 8}, {"prefix": "of the "}]
    for options in cases:
        embeddings, places = embedder.embed_chunks(TEXTS, max_tokens=24, **options)
        assert len(embeddings) == len(places) and {place.text for place in places} == {0, 1, 3}
        parts = [TEXTS[place.text][place.start : place.end] for place in places]
        assert embeddings.numpy().tobytes() == embedder.embed(parts, prefix=options.get("prefix")).tobytes()
        assert not any(embeddings.truncated)
        cut = [place for place in places if place.text == 3]
        chunks = embedder.chunk(TEXTS[3], max_tokens=24, **options)
        assert [place[1:] for place in cut] == [chunk[:2] for chunk in chunks]
    assert len(embedder.embed_chunks([]).embeddings) == 0


def test_long_texts_have_one_vector(embedder: Embedder) -> None:
    found = embedder.embed_long(TEXTS, max_tokens=24)
    assert len(found) == 4 and not any(found.truncated)
    assert found.numpy()[1].tobytes() == embedder.embed_one(TEXTS[1]).tobytes()
    chunks = embedder.embed_chunks(TEXTS, max_tokens=24)
    # Weights of words, without the two special tokens.
    own = [at for at, place in enumerate(chunks.places) if place.text == 0]
    weights = np.array([chunks.embeddings.token_counts[at] - 2 for at in own])
    mean = weights @ chunks.embeddings.numpy()[own].astype(np.float64)
    np.testing.assert_allclose(found.numpy()[0], mean / np.linalg.norm(mean), atol=1e-6)
    most = embedder.embed_long(TEXTS[:1], max_tokens=24, combine="max").numpy()[0]
    largest = chunks.embeddings.numpy()[own].max(0)
    np.testing.assert_allclose(most, largest / np.linalg.norm(largest), atol=1e-6)
    assert embedder.embed_long(TEXTS, max_tokens=24, dimension=8).dimension == 8


def test_asyncio_gets_the_same_chunks(embedder: Embedder) -> None:
    async def main() -> None:
        chunks, long = await asyncio.gather(
            embedder.aembed_chunks(TEXTS, max_tokens=24, by="markdown"), embedder.aembed_long(TEXTS, max_tokens=24)
        )
        same = embedder.embed_chunks(TEXTS, max_tokens=24, by="markdown")
        assert chunks.places == same.places
        assert chunks.embeddings.to_bytes() == same.embeddings.to_bytes()
        assert long.to_bytes() == embedder.embed_long(TEXTS, max_tokens=24).to_bytes()

    asyncio.run(main())


def test_wrong_calls_are_errors() -> None:
    embedder = Embedder(BERT, config=PORTABLE)
    with pytest.raises(ConfigError, match="markdown"):
        embedder.chunk(LONG, by="words")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="max"):
        embedder.embed_long(TEXTS, combine="sum")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="65 tokens"):
        embedder.embed_chunks(TEXTS, max_tokens=65)
    with pytest.raises(ConfigError, match="overlap"):
        embedder.embed_long(TEXTS, max_tokens=24, overlap=24)
    with pytest.raises(TextError, match=r"^texts\[1\] is None"):
        embedder.embed_chunks(["a", None])  # type: ignore[list-item]
    with pytest.raises(TextError, match="None"):
        embedder.chunk(None)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        embedder.chunk(LONG, max_tokens=-1)
