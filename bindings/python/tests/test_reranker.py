"""Documents are ranked."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import numpy as np
import pytest

from conftest import BERT, CLASSIFIER, PORTABLE
from isovec import ConfigError, Ranked, Reranker, TextError, UnsupportedModelError

QUERY = "which animal is in the house"
DOCUMENTS = ["the dog is an animal", "money in the bank", "A cat sleeps in the house.", "", "money in the bank"]


@pytest.fixture(scope="module")
def reranker(reranker_files: dict[str, bytes]) -> Reranker:
    return Reranker(reranker_files, config=PORTABLE)


def test_scores_are_the_same_on_every_way_in(reranker_files: dict[str, bytes], engine: dict[str, Any]) -> None:
    reranker = Reranker(reranker_files, config=engine)
    pairs = [(QUERY, document) for document in DOCUMENTS]
    logits = reranker.score(pairs, scores="logits")
    assert logits.dtype == np.float32 and logits.shape == (len(DOCUMENTS),)
    assert len(set(logits.tolist())) == len(DOCUMENTS) - 1
    np.testing.assert_allclose(reranker.score(pairs), 1 / (1 + np.exp(-logits)), atol=1e-6)
    ranked = reranker.rank(QUERY, DOCUMENTS, scores="logits")
    assert [row.index for row in ranked] == np.argsort(-logits, kind="stable").tolist()
    np.testing.assert_allclose([row.score for row in ranked], np.sort(logits)[::-1], atol=1e-5)
    # The query comes first.
    assert not np.allclose(reranker.score([(b, a) for a, b in pairs[:3]]), reranker.score(pairs[:3]), atol=1e-4)
    alone = [reranker.score([list(pair)], scores="logits").item() for pair in pairs]
    np.testing.assert_allclose(alone, logits, atol=1e-5)


def test_top_n_and_nothing_at_all(reranker: Reranker) -> None:
    every = reranker.rank(QUERY, DOCUMENTS)
    assert type(every[0]) is Ranked and len(every) == len(DOCUMENTS)
    assert reranker.rank(QUERY, DOCUMENTS, 2) == every[:2]
    assert reranker.rank(QUERY, DOCUMENTS, top_n=10**6) == every
    assert reranker.rank(QUERY, []) == []
    assert reranker.score([]).shape == (0,)
    with pytest.raises(ConfigError, match="top_n is 0"):
        reranker.rank(QUERY, DOCUMENTS, top_n=0)
    with pytest.raises(OverflowError):
        reranker.rank(QUERY, DOCUMENTS, top_n=-1)


def test_asyncio_gets_the_same(reranker: Reranker) -> None:
    async def main() -> None:
        ranked = await asyncio.gather(*(reranker.arank(QUERY, DOCUMENTS, top) for top in (None, 1, 3)))
        every = reranker.rank(QUERY, DOCUMENTS)
        assert ranked == [every, every[:1], every[:3]]
        pairs = [(document, QUERY) for document in DOCUMENTS]
        scores = await reranker.ascore(pairs, scores="logits")
        assert scores.tobytes() == reranker.score(pairs, scores="logits").tobytes()

    asyncio.run(main())


def test_wrong_calls_are_errors(reranker: Reranker) -> None:
    with pytest.raises(ConfigError, match="softmax"):
        reranker.rank(QUERY, DOCUMENTS, scores="softmax")  # type: ignore[arg-type]
    with pytest.raises(TextError, match="one str"):
        reranker.rank(QUERY, "a document")
    with pytest.raises(TextError, match="`text` is of type list"):
        reranker.rank([QUERY], DOCUMENTS)  # type: ignore[arg-type]
    for pairs, why in (
        ("ab", "a list of pairs"),
        (7, "a list of pairs"),
        (["ab"], r"^pairs\[0\] is no tuple"),
        ([("a", "b"), ("a",)], r"^pairs\[1\] is no tuple"),
        ([("a", None)], r"^pairs\[0\]\[1\] is None"),
    ):
        with pytest.raises(TextError, match=why):
            reranker.score(pairs)  # type: ignore[arg-type]


def test_what_is_no_reranker_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="each of 3 labels"):
        Reranker(CLASSIFIER, config=PORTABLE)


def test_a_reranker_is_pickled_and_says_what_it_is(reranker: Reranker) -> None:
    same = pickle.loads(pickle.dumps(reranker))
    assert type(same) is Reranker
    assert same.rank(QUERY, DOCUMENTS) == reranker.rank(QUERY, DOCUMENTS)
    assert repr(reranker).startswith("<Reranker ")


def test_a_decoder_gets_its_instruction(engine: dict[str, Any]) -> None:
    folder = BERT.with_name("tiny-decoder-reranker")
    wanted = json.loads((folder / "reference.json").read_text())
    reranker = Reranker(folder, config=engine)
    pairs = [(wanted["query"], document["text"]) for document in wanted["documents"]]
    for options, field in [({}, "logit"), ({"instruction": wanted["instruction"]}, "instructed"), ({"prompt": "short"}, "short")]:
        scores = [document[field] for document in wanted["documents"]]
        np.testing.assert_allclose(reranker.score(pairs, **options), scores, atol=1e-5)
        best = reranker.rank(wanted["query"], [text for _, text in pairs], 1, **options)
        assert best[0].index == int(np.argmax(scores))
    with pytest.raises(ConfigError, match="one of them"):
        reranker.score(pairs, prompt="short", instruction="x")
    with pytest.raises(ConfigError, match="short"):
        reranker.rank("a", ["b"], prompt="none such")
