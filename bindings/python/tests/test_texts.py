"""What is no text is named by its place."""

from __future__ import annotations

import re
from collections import UserList
from typing import Any

import numpy as np
import pytest

from isovec import Embedder, IsovecError, TextError

NAN = float("nan")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a", None], "texts[1] is None"),
        (["a", "b", NAN], "texts[2] is NaN"),
        (np.array(["a", NAN], object), "texts[1] is NaN"),
        (["a", 1.5], "texts[1] is of type float"),
        ([b"a"], "texts[0] is bytes"),
        (np.array([b"a"]), "texts[0] is bytes"),
        ([["a"]], "texts[0] is of type list"),
        ([("a", "b")], "texts[0] is of type tuple"),
        (np.array([["a", "b"]]), "texts[0] is of type ndarray"),
        (UserList(["a", 3]), "texts[1] is of type int"),
        (["a", "\ud800"], "texts[1] holds half of a surrogate pair"),
        ("a", "`texts` is one str"),
        (b"a", "`texts` is bytes"),
        (3, "`texts` is of type int"),
        (None, "`texts` is None"),
        ({"a": 1}, "`texts` is a dict"),
        ({"a"}, "`texts` is a set"),
    ],
)
def test_what_is_no_text_is_named(embedder: Embedder, texts: Any, said: str) -> None:
    for embed in (embedder.embed, embedder.embeddings, embedder.aembed):
        with pytest.raises(TypeError, match="^" + re.escape(said)) as raised:
            embed(texts)
        assert isinstance(raised.value, TextError) and raised.value.kind == "InvalidText"


def test_one_text_is_one_text(embedder: Embedder) -> None:
    for text in (["a"], None, b"a", 1):
        with pytest.raises(TextError, match="^`text` is "):
            embedder.embed_query(text)  # type: ignore[arg-type]


def test_everything_that_holds_texts_is_read(embedder: Embedder) -> None:
    texts = ["the dog", "", "Über den Fluß", "日本語 \U0001f436"]
    expected = embedder.embed(texts).tobytes()
    array = np.array(texts)
    apart = np.array([text for pair in zip(texts, texts, strict=True) for text in pair])[::2]
    for same in (tuple(texts), iter(texts), (text for text in texts), UserList(texts), array, apart, array.astype(object), dict.fromkeys(texts).keys()):
        assert embedder.embed(same).tobytes() == expected


def test_an_error_while_texts_are_read_is_the_readers_own(embedder: Embedder) -> None:
    def texts() -> Any:
        yield "a"
        raise LookupError("of mine")

    with pytest.raises(LookupError, match="of mine"):
        embedder.embed(texts())
    stream = embedder.embed_stream(texts())
    assert next(stream).shape == (embedder.dimension,)
    with pytest.raises(LookupError, match="of mine"):
        next(stream)
    assert list(stream) == []


def test_a_stream_goes_on_after_a_text_that_failed_alone(embedder: Embedder) -> None:
    stream = embedder.embed_stream(["a", None])  # type: ignore[list-item]
    next(stream)
    with pytest.raises(TextError, match=r"^texts\[1\] is None"):
        next(stream)


def test_a_stream_reads_no_further_than_its_consumer(embedder: Embedder) -> None:
    read = 0

    def texts() -> Any:
        nonlocal read
        while True:
            read += 1
            yield f"text {read}"

    stream = embedder.embed_stream(texts())
    for _ in range(3):
        next(stream)
    assert 3 <= read < 10_000


def test_a_stream_that_reads_itself_is_an_error(embedder: Embedder) -> None:
    def texts() -> Any:
        yield "a"
        next(stream)

    stream = embedder.embed_stream(texts())
    next(stream)
    with pytest.raises(RuntimeError, match="reads this stream"):
        next(stream)


def test_errors_are_pickled_with_their_kind() -> None:
    import copy

    with pytest.raises(IsovecError) as raised:
        Embedder("/no/such/folder")
    same = copy.copy(raised.value)
    assert (str(same), same.kind, type(same)) == (str(raised.value), raised.value.kind, type(raised.value))
