"""Whether vectors may be compared with those of a store is said by their fingerprints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from conftest import BERT, PORTABLE
from isovec import ConfigError, Embedder, IncompatibleIndexError
from stores import K, TEXTS, dense, sparse, tokens


def test_the_texts_have_vectors_of_their_own() -> None:
    index, _ = dense()
    assert len(np.unique(index.numpy(), axis=0)) == len(TEXTS) > 4 * K
    assert len({sparse()[0][at].values.tobytes() for at in range(len(TEXTS))}) > 4 * K


def test_vectors_of_another_model_are_refused() -> None:
    index, queries = dense()
    sets: list[Any] = [index, index.compact("int8"), index.compact("binary"), sparse()[0], tokens()[0], tokens()[0].compact("int8")]
    asked: list[Any] = [queries, queries, queries, sparse()[1], tokens()[1], tokens()[1]]
    kinds = [0, 0, 0, 1, 2, 2]
    for here, kind in zip(sets, kinds, strict=True):
        assert set(here.fingerprint) >= {"identity", "precision"}
        for there, other in zip(asked, kinds, strict=True):
            for stored in (there.fingerprint, json.dumps(there.fingerprint), json.dumps(there.fingerprint).encode()):
                if kind == other:
                    assert here.check_compatible(stored) is None
                else:
                    with pytest.raises(IncompatibleIndexError, match="weights"):
                        here.check_compatible(stored)


def test_other_dimensions_are_refused_and_other_precisions_reported() -> None:
    whole = Embedder(BERT, config=PORTABLE)
    query = whole.embeddings(["the dog"], prompt="query")
    first = whole.embeddings(["the dog"], dimension=8)
    assert first.check_compatible(whole.embeddings(["a cat"], dimension=8).fingerprint) is None
    with pytest.raises(IncompatibleIndexError, match="dimension: 32 here, 8 there"):
        query.check_compatible(first.fingerprint)
    half = Embedder(BERT, dtype="f16", config=PORTABLE)
    assert query.check_compatible(half.fingerprint) == ("f32", "f16")
    assert query.check_compatible(whole.fingerprint) is None


@pytest.mark.parametrize("stored", ["", "{", "\ud800", b"", b"\xff{}", object(), {"identity": object()}, {1: {2}}, "null", "[]", {}, {"identity": {}}, {"identity": {"weights": 1}, "precision": "f32"}, 7, None])
def test_what_is_no_fingerprint_is_said(stored: Any, embedder: Embedder) -> None:
    with pytest.raises(ConfigError, match="`fingerprint` is none"):
        embedder.embeddings(["the dog"]).check_compatible(stored)
    with pytest.raises(IncompatibleIndexError, match="weights"):
        embedder.embeddings(["the dog"]).check_compatible({"identity": {}, "precision": "f32"})
