"""Vectors as an expression of Polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BERT, PORTABLE
from isovec import ConfigError, Embedder, EmbedderSpec, Embeddings, IncompatibleIndexError, TextError

pl = pytest.importorskip("polars")

from isovec.polars import embed  # noqa: E402

TEXTS = ["the dog has a tail", None, "money in the bank", "", None]
THERE = [text for text in TEXTS if text is not None]


def test_vectors_are_those_of_python_and_nulls_stay(embedder: Embedder) -> None:
    frame = pl.DataFrame({"id": range(5), "text": TEXTS})
    expected = embedder.embed_passages(THERE)
    for vectors in (embed("text", embedder), embed("text", BERT, config=PORTABLE), embed("text", EmbedderSpec(embedder))):
        found = frame.with_columns(vector=vectors)
        assert found.schema["vector"] == pl.Array(pl.Float32, 32)
        assert found["vector"].is_null().to_list() == [text is None for text in TEXTS]
        assert found["vector"].drop_nulls().to_numpy().tobytes() == expected.tobytes()
    assert frame.select(pl.col("text").isovec.embed(embedder, prompt="query")).drop_nulls()["text"].to_numpy().tobytes() == (
        embedder.embed_queries(THERE).tobytes()
    )


@pytest.mark.parametrize("texts", [[], [None, None]])
def test_there_may_be_no_text(embedder: Embedder, texts: list[None]) -> None:
    frame = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)})
    found = frame.select(embed("text", embedder))["text"]
    assert found.dtype == pl.Array(pl.Float32, 32) and found.null_count() == len(found) == len(texts)


def test_no_nulls_no_copies(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Embeddings] = []
    compute = EmbedderSpec.embeddings

    def keep(spec: EmbedderSpec, texts: Any) -> Embeddings:
        computed.append(compute(spec, texts))
        return computed[-1]

    monkeypatch.setattr(EmbedderSpec, "embeddings", keep)
    vectors = pl.DataFrame({"text": THERE}).select(embed("text", embedder))["text"].to_numpy()
    assert vectors.tobytes() == embedder.embed_passages(THERE).tobytes()
    assert vectors.ctypes.data == computed[-1].numpy().ctypes.data


def test_lazy_frames_stream_and_group(embedder: Embedder, tmp_path: Path) -> None:
    model = Embedder(BERT, config={**PORTABLE, "session": {"deterministic_compute": True}})
    texts = [f"the dog number {at}" if at % 7 else None for at in range(1000)]
    pl.DataFrame({"text": texts, "group": [at % 3 for at in range(1000)]}).write_parquet(tmp_path / "texts.parquet")
    lazy = pl.scan_parquet(tmp_path / "texts.parquet").with_columns(embed("text", model).alias("vector"))
    assert lazy.collect_schema()["vector"] == pl.Array(pl.Float32, 32)
    expected = model.embed_passages([text for text in texts if text is not None])
    for engine in ("in-memory", "streaming"):
        found = lazy.collect(engine=engine)["vector"]
        assert found.drop_nulls().to_numpy().tobytes() == expected.tobytes()
    # A plan that is written down has the name of the model, and is read by another process.
    read = pl.LazyFrame.deserialize(lazy.serialize())
    np.testing.assert_array_equal(read.collect()["vector"].drop_nulls().to_numpy(), expected)


def test_categories_are_texts(embedder: Embedder) -> None:
    expected = embedder.embed_passages(["a", "b", "a"]).tobytes()
    for dtype in (pl.Categorical, pl.Enum(["a", "b"])):
        frame = pl.DataFrame({"text": pl.Series(["a", "b", "a"], dtype=dtype)})
        assert frame.select(embed(pl.col("text"), embedder))["text"].to_numpy().tobytes() == expected


def test_what_cannot_be_is_an_error(embedder: Embedder) -> None:
    with pytest.raises(TextError, match="the column 'text' is of Int64"):
        pl.DataFrame({"text": [1]}).select(embed("text", embedder))
    with pytest.raises(ConfigError, match="nowhere"):
        embed("text", embedder, prompt="nowhere")
    other = Embedder(BERT, config=PORTABLE, dimension=8).fingerprint
    with pytest.raises(IncompatibleIndexError, match="dimension"):
        embed("text", embedder, fingerprint=other)
