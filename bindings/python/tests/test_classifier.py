"""Texts get labels."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import numpy as np
import pytest

from conftest import CLASSIFIER, PORTABLE
from isovec import Classifier, ConfigError, TextError

REFERENCE = json.loads((CLASSIFIER / "reference.json").read_text())
TEXTS = [entry["text"] for entry in REFERENCE["texts"]]
LOGITS = np.array([entry["logits"] for entry in REFERENCE["texts"]])


def test_scores_are_those_of_the_reference(engine: dict[str, Any]) -> None:
    classifier = Classifier(CLASSIFIER, config=engine)
    assert classifier.labels == REFERENCE["labels"]
    logits = classifier.scores(TEXTS, scores="logits")
    assert logits.dtype == np.float32 and not logits.flags.owndata
    np.testing.assert_allclose(logits, LOGITS, atol=1e-5)
    powers = np.exp(LOGITS)
    np.testing.assert_allclose(classifier.scores(TEXTS, scores="softmax"), powers / powers.sum(1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(classifier.scores(TEXTS, scores="sigmoid"), 1 / (1 + 1 / powers), atol=1e-6)


def test_labels_are_ranked() -> None:
    classifier = Classifier(CLASSIFIER, config=PORTABLE)
    scores = classifier.scores(TEXTS)
    for labels, row in zip(classifier.classify(TEXTS), scores, strict=True):
        assert [label.index for label in labels] == np.argsort(-row, kind="stable").tolist()
        for label in labels:
            assert label.label == classifier.labels[label.index] and label.score == row[label.index]
    # Many texts go another way than few.
    many = classifier.scores(TEXTS * 100)
    assert many.tobytes() == scores.tobytes() * 100
    assert classifier.classify([]) == []


def test_asyncio_gets_the_same_labels() -> None:
    classifier = Classifier(CLASSIFIER, config=PORTABLE)

    async def main() -> None:
        found = await asyncio.gather(*(classifier.aclassify([text]) for text in TEXTS))
        assert [labels for [labels] in found] == classifier.classify(TEXTS)
        [[best, *_]] = await classifier.aclassify(TEXTS[:1], scores="logits")
        assert best.score == classifier.scores(TEXTS[:1], scores="logits").max()

    asyncio.run(main())


def test_pairs_are_read_together() -> None:
    classifier = Classifier(CLASSIFIER, config=PORTABLE)
    pairs = [(one, other) for one in TEXTS[:3] for other in TEXTS[3:5]]
    scores = classifier.pair_scores(pairs)
    assert scores.shape == (6, len(classifier.labels)) and not scores.flags.owndata
    for labels, row in zip(classifier.classify_pairs(pairs), scores, strict=True):
        assert [label.score for label in labels] == sorted(row.tolist(), reverse=True)
        assert all(label.score == row[label.index] for label in labels)
    # The second text counts, and so does which is first.
    turned = classifier.pair_scores([[other, one] for one, other in pairs])
    assert (np.abs(turned - scores).max(1) > 1e-6).all()
    assert (np.abs(classifier.scores([one for one, _ in pairs]) - scores).max(1) > 1e-6).all()

    async def main() -> None:
        found = await asyncio.gather(*(classifier.aclassify_pairs([pair], scores="logits") for pair in pairs))
        logits = classifier.pair_scores(pairs, scores="logits")
        assert [labels[0].score for [labels] in found] == logits.max(1).tolist()

    asyncio.run(main())
    assert classifier.classify_pairs([]) == []
    with pytest.raises(TextError, match=r"^pairs\[1\] is no tuple or list of two"):
        classifier.classify_pairs([("a", "b"), "ab"])  # type: ignore[list-item]
    with pytest.raises(TextError, match=r"^pairs\[0\]\[1\] is None"):
        classifier.pair_scores([("a", None)])  # type: ignore[list-item]


def test_wrong_calls_are_errors() -> None:
    classifier = Classifier(CLASSIFIER, config=PORTABLE)
    with pytest.raises(ConfigError, match="softmax"):
        classifier.classify(TEXTS, scores="percent")  # type: ignore[arg-type]
    with pytest.raises(TextError, match=r"^texts\[0\] is None"):
        classifier.classify([None])  # type: ignore[list-item]
    with pytest.raises(ConfigError):
        Classifier(CLASSIFIER, dimension=3)  # type: ignore[call-arg]


def test_a_classifier_is_pickled() -> None:
    classifier = Classifier(CLASSIFIER, config=PORTABLE)
    same = pickle.loads(pickle.dumps(classifier))
    assert type(same) is Classifier
    assert same.scores(TEXTS).tobytes() == classifier.scores(TEXTS).tobytes()
