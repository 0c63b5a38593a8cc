"""Pictures become vectors."""

from __future__ import annotations

import asyncio
import json
import pickle
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from conftest import CLIP, DATA, PORTABLE
from isovec import ConfigError, ImageClassifier, ImageEmbedder, IsovecError


def png(colour: tuple[int, int, int], side: int = 40) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_files_and_bytes_are_the_same_picture(tmp_path: Path) -> None:
    embedder = ImageEmbedder(CLIP, config=PORTABLE)
    red, blue = png((255, 0, 0)), png((0, 0, 255))
    file = tmp_path / "red"
    file.write_bytes(red)
    vectors = embedder.embed([red, blue, file, str(file)])
    assert vectors.shape == (4, embedder.dimension) and not vectors.flags.owndata
    assert vectors[0].tobytes() == vectors[2].tobytes() == vectors[3].tobytes() != vectors[1].tobytes()
    found = embedder.embeddings([red, blue])
    assert found.numpy().tobytes() == vectors[:2].tobytes()
    assert [hit.index for hit in found.search(embedder.embeddings([blue]), 1)[0]] == [1]
    assert asyncio.run(embedder.aembed([red, blue])).tobytes() == vectors[:2].tobytes()
    assert embedder.embed([]).shape == (0, embedder.dimension)
    assert np.isfinite(vectors).all()


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    embedder = ImageEmbedder(CLIP, config=PORTABLE)
    with pytest.raises(IsovecError, match="picture 1") as raised:
        embedder.embed([png((0, 0, 0)), b"no picture"])
    assert raised.value.kind == "Picture"
    with pytest.raises(TypeError, match=r"pictures\[0\] is of type int"):
        embedder.embed([3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="brackets"):
        embedder.embed(png((0, 0, 0)))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="missing"):
        embedder.embed([tmp_path / "missing"])


NETWORK = DATA / "tiny-network"
REFERENCE = json.loads((NETWORK / "reference.json").read_text())["pictures"]
LABELS = list(json.loads((NETWORK / "config.json").read_text())["id2label"].values())


def pictures() -> list[bytes]:
    """The pictures of the reference."""
    packed = (DATA.parents[1] / "input" / "image" / "tests" / "data" / "pictures.bin").read_bytes()
    return [packed[entry["at"] :][: entry["bytes"]] for entry in REFERENCE]


def test_labels_of_pictures_are_those_of_the_reference(tmp_path: Path) -> None:
    classifier = ImageClassifier(NETWORK)
    assert classifier.labels == LABELS
    logits = np.array([entry["logits"] for entry in REFERENCE])
    files = pictures()
    file = tmp_path / "picture"
    file.write_bytes(files[-1])
    given: list[bytes | Path] = [*files[:-1], file]
    found = classifier.scores(given, scores="logits")
    assert found.dtype == np.float32 and not found.flags.owndata
    np.testing.assert_allclose(found, logits, rtol=2e-6, atol=2e-6 * max(1, np.abs(logits).max()))
    scores = classifier.scores(given)
    said = classifier.classify(given)
    for labels, row, entry in zip(said, scores, REFERENCE, strict=True):
        assert labels[0].label == LABELS[int(np.argmax(entry["logits"]))]
        assert [label.index for label in labels] == np.argsort(-row, kind="stable").tolist()
        assert all(label.score == row[label.index] for label in labels)
    assert asyncio.run(classifier.aclassify(given)) == said
    same = pickle.loads(pickle.dumps(classifier))
    assert type(same) is ImageClassifier and same.scores(given).tobytes() == scores.tobytes()
    assert classifier.classify([]) == []


def test_wrong_calls_of_a_classifier_are_errors() -> None:
    classifier = ImageClassifier(NETWORK)
    with pytest.raises(IsovecError, match="picture 1") as raised:
        classifier.classify([pictures()[0], b"no picture"])
    assert raised.value.kind == "Picture"
    with pytest.raises(ConfigError, match="softmax"):
        classifier.scores([], scores="percent")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="brackets"):
        classifier.classify(pictures()[0])  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        ImageClassifier(NETWORK, dimension=3)  # type: ignore[call-arg]
