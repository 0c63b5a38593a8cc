"""Compact sets: files and hits are those of Rust, and what cannot work is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from conftest import DATA
from isovec import CompactEmbeddings, Embedder, Embeddings, Hit, IncompatibleIndexError, IsovecError, fuse

FORMS = ("int8", "binary")
FILES = DATA / "embeddings"


@pytest.mark.parametrize("form", FORMS)
def test_a_set_has_the_bytes_and_hits_of_rust(form: str, tmp_path: Path) -> None:
    whole = Embeddings.load(FILES / "native.safetensors")
    compact = whole.compact(form)  # type: ignore[arg-type]
    path = FILES / f"{form}.safetensors"
    assert compact.to_bytes() == path.read_bytes()
    expected = json.loads((FILES / "compact-hits.json").read_text())[FORMS.index(form)]
    compact.save(tmp_path / "set.safetensors")
    for read in (compact, CompactEmbeddings.load(path), CompactEmbeddings.load(tmp_path / "set.safetensors"), pickle.loads(pickle.dumps(compact))):
        assert (read.form, len(read), read.dimension, read.metric, read.labels) == (form, len(whole), whole.dimension, "cosine", whole.labels)
        for hits, wanted in zip(read.search(whole, 3), expected, strict=True):
            assert [hit.index for hit in hits] == [hit["index"] for hit in wanted]
            assert [hit.score for hit in hits] == pytest.approx([hit["score"] for hit in wanted], abs=1e-7)
    assert f"in {form}" in repr(compact)


def test_hits_are_scored_again() -> None:
    whole = Embeddings.load(FILES / "native.safetensors")
    assert [hits[0].index for hits in whole.search(whole, 1)] == list(range(len(whole)))
    with pytest.raises(IsovecError, match="one"):
        whole.rescored(whole, [Hit(0, 0.5)])
    pooled_otherwise = (FILES / "native.safetensors").read_bytes().replace(b"mean", b"maxx", 1)
    with pytest.raises(IncompatibleIndexError, match="pooling"):
        whole.compact("int8").search(Embeddings.from_bytes(pooled_otherwise))
    with pytest.raises(ValueError, match="int4"):
        whole.compact("int4")  # type: ignore[arg-type]
    with pytest.raises(IsovecError, match="CompactEmbeddings"):
        Embeddings.load(FILES / "int8.safetensors")
    with pytest.raises(IsovecError):
        CompactEmbeddings.from_bytes(b"")


def test_a_set_of_one_scores_hits_again(embedder) -> None:  # type: ignore[no-untyped-def]
    passages = embedder.embeddings(["cats purr", "the dog barks at night", "stocks fell"])
    query = embedder.embeddings(["a loud animal"])
    right = passages.search(query, 3)[0]
    found = [Hit(hit.index, 0.0) for hit in reversed(right)]
    assert passages.rescored(query, found, 2) == right[:2]
    compact = passages.compact("int8")
    assert compact.rescored(query, found, 3) == compact.search(query, 3)[0]
    with pytest.raises(IsovecError, match="3 rows"):
        passages.rescored(query, [Hit(3, 1.0)])


def test_rankings_are_joined_by_reciprocal_rank() -> None:
    fused = fuse([[Hit(4, 0.9), Hit(7, 0.8)], [Hit(7, 12.0), Hit(9, 3.0)]])
    assert [hit.index for hit in fused] == [7, 4, 9]
    assert fused[0].score == pytest.approx(1 / 61 + 1 / 62)
    assert fuse([], 5) == []


def test_the_numbers_of_a_compact_set(embedder: Embedder) -> None:
    texts = ["the dog has a tail", "a cat", "money in the bank"]
    for index in (embedder.embeddings(texts), embedder.embeddings(texts, dimension=12), embedder.embeddings([])):
        n = index.dimension
        codes, signs = index.compact("int8"), index.compact("binary")
        assert codes.numpy().dtype == np.int8 and codes.numpy().shape == (len(index), n)
        assert codes.scales.dtype == np.float32 and codes.scales.shape == (len(index),)
        scale = np.abs(index.numpy()).max(axis=1, initial=0) / np.float32(127)
        np.testing.assert_array_equal(codes.scales, scale)
        assert (np.abs(codes.numpy() * codes.scales[:, None] - index.numpy()) <= scale[:, None] * 0.5001).all()
        np.testing.assert_array_equal(signs.numpy(), np.packbits(index.numpy() > 0, axis=1))
        assert signs.numpy().dtype == np.uint8 and signs.scales.shape == (0,)
        for array in (codes.numpy(), signs.numpy()):
            assert not array.flags.writeable


def test_an_array_outlives_its_set(embedder: Embedder) -> None:
    index = embedder.embeddings(["the dog has a tail"])
    kept = CompactEmbeddings.from_bytes(index.compact("int8").to_bytes()).numpy()
    np.testing.assert_array_equal(kept, index.compact("int8").numpy())
