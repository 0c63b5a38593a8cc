"""The vectors are those of Rust, bit for bit, and nothing is copied on their way out."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BERT, DATA, program
from isovec import ConfigError, Embedder

TEXTS = [line for line in (DATA / "reference" / "texts.txt").read_text(encoding="utf-8").split("\n") if line.strip()]


def test_vectors_are_those_of_the_program(engine: dict[str, Any], tmp_path: Path) -> None:
    texts, out = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    run = [program(), "embed", "--model", str(BERT), "--engine", engine["engine"], "--file", str(texts), "--out", str(out)]
    subprocess.run(run, check=True)
    expected = np.load(out)
    got = Embedder(BERT, config=engine).embed(TEXTS)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


def test_vectors_are_those_of_the_reference(engine: dict[str, Any]) -> None:
    embedder = Embedder(BERT, config=engine)
    reference = json.loads((BERT / "reference.json").read_text())
    for role, embed in (("queries", embedder.embed_query), ("passages", embedder.embed_passage)):
        for text in reference.get(role, []):
            np.testing.assert_allclose(embed(text["text"]), text["vector"], atol=1e-5)
    assert reference["queries"]


def test_every_way_gives_the_same_bits(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        assert embedder.embed_one(text).tobytes() == row.tobytes()
    streamed = np.stack(list(embedder.embed_stream(iter(TEXTS))))
    assert streamed.tobytes() == together.tobytes()
    assert embedder.embeddings(TEXTS).numpy().tobytes() == together.tobytes()


def test_an_array_owns_what_isovec_filled(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension) and vectors.dtype == np.float32
    assert vectors.flags.c_contiguous and vectors.flags.writeable
    # numpy allocated none of it: the chain of bases ends in Rust's block.
    base: Any = vectors
    while isinstance(base, np.ndarray):
        assert not base.flags.owndata
        base = base.base
    assert type(base).__name__ == "PySliceContainer"


def test_a_set_is_seen_where_it_lies(embedder: Embedder) -> None:
    found = embedder.embeddings(TEXTS)
    one, other = found.numpy(), np.asarray(found)
    assert one.ctypes.data == other.ctypes.data == found.__array_interface__["data"][0]
    assert not one.flags.writeable and not one.flags.owndata
    del found
    assert other.tobytes() == embedder.embed(TEXTS).tobytes()


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimension)
    assert embedder.embeddings([]).numpy().shape == (0, embedder.dimension)
    assert list(embedder.embed_stream([])) == []


def test_options_are_of_a_call(embedder: Embedder) -> None:
    whole, cut = embedder.embed(TEXTS), embedder.embed(TEXTS, dimension=8)
    assert cut.shape == (len(TEXTS), 8)
    kept = whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(cut, kept, atol=1e-6)
    query = embedder.embed(TEXTS, prompt="query")
    assert query.tobytes() == embedder.embed_queries(TEXTS).tobytes() != whole.tobytes()
    passage = embedder.embed(TEXTS, prompt="passage")
    assert passage.tobytes() == embedder.embed_passages(TEXTS).tobytes()
    prefixed = embedder.embed(["a dog"], prefix="the tail of ")
    assert prefixed.tobytes() == embedder.embed(["the tail of a dog"], prompt="none").tobytes()
    wrong: list[Any] = [{"dimension": 99}, {"prompt": "no such"}, {"prompt": "query", "prefix": "x"}]
    for options in wrong:
        with pytest.raises(ConfigError):
            embedder.embed(TEXTS, **options)


def test_threads_share_a_model(embedder: Embedder) -> None:
    expected = embedder.embed(TEXTS).tobytes()
    results: list[bytes] = []

    def work() -> None:
        for _ in range(5):
            results.append(embedder.embed(TEXTS).tobytes())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 40


def test_the_interpreter_is_free_meanwhile(embedder: Embedder) -> None:
    # The texts' generator and another thread take turns: neither could if one held the lock.
    done = threading.Event()
    turns = 0

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = turns
        embedder.embed(TEXTS * 20)
        assert turns > before
    finally:
        done.set()
        thread.join()


def test_similarity_takes_any_array(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    found = embedder.embeddings(TEXTS)
    expected = found.similarity(found)
    np.testing.assert_allclose(expected, vectors @ vectors.T, atol=1e-6)
    np.testing.assert_allclose(np.diag(expected), 1, atol=1e-6)
    # Rows apart, columns apart, backwards, of 64 bits, and lists.
    apart = np.empty((len(TEXTS) * 2, embedder.dimension), np.float32)
    apart[::2] = vectors
    others: list[Any] = [apart[::2], np.asfortranarray(vectors), vectors[::-1][::-1], vectors.astype(float), vectors.tolist(), found]
    for same in others:
        assert embedder.similarity(same, vectors).tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="32 and 8"):
        embedder.similarity(vectors, vectors[:, :8])


def test_a_search_finds_what_is_most_alike(embedder: Embedder) -> None:
    passages = ["the dog has a tail", "money in the bank", "a river bank"]
    index = embedder.embeddings(passages, prompt="passage")
    queries = embedder.embeddings(["money in the bank", "the dog"], prompt="query")
    found = index.search(queries, 2)
    scores = index.similarity(queries)
    for hits, column in zip(found, scores.T, strict=True):
        best = np.argsort(-column)[:2]
        assert [hit.index for hit in hits] == best.tolist()
        assert [hit.score for hit in hits] == column[best].tolist()
    assert embedder.rank("the dog", passages) == index.search(queries, 3)[1]
    assert len(embedder.rank("the dog", passages, k=1)) == 1
