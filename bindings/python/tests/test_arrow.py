"""Arrow's arrays in and out, without pyarrow in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isovec import Embedder, TextError

pa = pytest.importorskip("pyarrow")

TEXTS = ["the dog", "", "Über den Fluß", "a text that is longer than twelve bytes", "日本語"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(["before", *TEXTS, "after"])[1:-1],
        pa.array(["before", *TEXTS, "after"], pa.string_view())[1:-1],
        pa.array(["before", *TEXTS, "after"]).dictionary_encode()[1:-1],
        pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
        pa.chunked_array([pa.array(TEXTS).dictionary_encode()]),
    ],
    ids=lambda array: f"{type(array).__name__} of {array.type}",
)
def test_strings_are_read_however_they_lie(embedder: Embedder, array: Any) -> None:
    assert embedder.embed(array).tobytes() == embedder.embed(TEXTS).tobytes()


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (pa.array(["a", None]), r"texts\[1\] is null"),
        (pa.array(["a", None], pa.string_view()), r"texts\[1\] is null"),
        (pa.array(["a", "b", None]).dictionary_encode(), r"texts\[2\] is null"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), r"texts\[1\] is null"),
        (pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string())), r"texts\[0\] is null"),
        (pa.array([None, None]), r"texts\[0\] is null"),
        (pa.chunked_array([["a"], ["b", None]]), r"texts\[2\] is null"),
        (pa.array([1, 2]), "`texts` is an Arrow array of Int64"),
        (pa.array([b"a"]), "`texts` is an Arrow array of Binary"),
        (pa.array([["a"]]), "`texts` is an Arrow array of List"),
        (pa.table({"text": ["a"]}), "`texts` is an Arrow array of Struct"),
        (pa.array([1]).dictionary_encode(), "`texts` is an Arrow array of Dictionary"),
    ],
    ids=str,
)
def test_what_is_no_text_is_named(embedder: Embedder, array: Any, said: str) -> None:
    with pytest.raises(TextError, match="^" + said):
        embedder.embed(array)


def test_bytes_that_are_no_utf_8_are_an_error(embedder: Embedder) -> None:
    broken = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff"))
    with pytest.raises(ValueError, match="UTF-?8"):
        embedder.embed(broken)
    beyond = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 9, 2], np.int32)), pa.py_buffer(b"ab"))
    with pytest.raises(ValueError):
        embedder.embed(beyond)
    for array in (broken, beyond):
        with pytest.raises(ValueError):
            embedder.embed(pa.chunked_array([array]))


def test_vectors_are_seen_where_they_lie(embedder: Embedder) -> None:
    found = embedder.embeddings(TEXTS)
    array = pa.array(found)
    assert array.type == pa.list_(pa.field("item", pa.float32(), nullable=False), embedder.dimension)
    assert len(array) == len(TEXTS) and array.null_count == 0
    assert array.flatten().buffers()[1].address == found.numpy().ctypes.data
    del found
    assert array.flatten().to_numpy().tobytes() == embedder.embed(TEXTS).tobytes()
    assert len(pa.array(embedder.embeddings([]))) == 0


def test_capsules_are_let_go_of_unused(embedder: Embedder) -> None:
    found = embedder.embeddings(TEXTS)
    for _ in range(100):
        found.__arrow_c_array__()
    assert len(pa.array(found)) == len(TEXTS)


def test_polars_and_pandas_are_read(embedder: Embedder) -> None:
    expected = embedder.embed(TEXTS).tobytes()
    polars = pytest.importorskip("polars")
    assert embedder.embed(polars.Series(TEXTS)).tobytes() == expected
    assert embedder.embed(polars.Series(TEXTS, dtype=polars.Categorical)).tobytes() == expected
    with pytest.raises(TextError, match=r"^texts\[1\] is null"):
        embedder.embed(polars.Series(["a", None]))
    pandas = pytest.importorskip("pandas")
    assert embedder.embed(pandas.Series(TEXTS)).tobytes() == expected
    with pytest.raises(TextError, match=r"^texts\[1\] is "):
        embedder.embed(pandas.Series(["a", None]))
