"""Vectors as a function of Daft."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BERT, PORTABLE, change_weights
from isovec import Embedder, EmbedderSpec

os.environ.setdefault("DO_NOT_TRACK", "true")
daft = pytest.importorskip("daft")

from isovec.daft import embed  # noqa: E402

TEXTS = ["the dog has a tail", None, "money in the bank", "", None]
THERE = [text for text in TEXTS if text is not None]
SAME_BITS = {**PORTABLE, "session": {"deterministic_compute": True}}


def rows(frame: Any) -> list[Any]:
    """The vectors of a frame."""
    found: list[Any] = frame.to_pydict()["vector"]
    return found


@pytest.mark.parametrize("use_process", [False, True])
def test_vectors_are_those_of_python_and_nulls_stay(embedder: Embedder, use_process: bool) -> None:
    frame = daft.from_pydict({"id": list(range(5)), "text": TEXTS})
    found = frame.with_column("vector", embed("text", embedder, use_process=use_process))
    assert found.schema()["vector"].dtype == daft.DataType.embedding(daft.DataType.float32(), 32)
    vectors = rows(found)
    assert [vector is None for vector in vectors] == [text is None for text in TEXTS]
    there = np.stack([vector for vector in vectors if vector is not None]).astype(np.float32)
    assert there.tobytes() == embedder.embed_passages(THERE).tobytes()


def test_a_process_of_daft_loads_the_model_and_compares_it(folder: Path) -> None:
    frame = daft.from_pydict({"text": ["a", None]})
    refused = frame.with_column("vector", embed("text", folder, config=PORTABLE, use_process=True))
    change_weights(folder)
    with pytest.raises(Exception, match="it is not the one that the work was planned with"):
        rows(refused)
    shutil.rmtree(folder)
    with pytest.raises(Exception, match="could not load the model"):
        rows(refused)


def test_many_batches_and_instances(tmp_path: Path) -> None:
    model = Embedder(BERT, config=SAME_BITS)
    texts = [f"the dog number {at}" if at % 7 else None for at in range(500)]
    daft.from_pydict({"id": list(range(500)), "text": texts}).write_parquet(str(tmp_path))
    spec = EmbedderSpec(model, prompt="query")
    vectors = embed(daft.col("text"), spec, max_concurrency=2, use_process=True, batch_size=64)
    found = daft.read_parquet(str(tmp_path)).with_column("vector", vectors).sort("id")
    there = np.stack([vector for vector in rows(found) if vector is not None]).astype(np.float32)
    assert there.tobytes() == model.embed_queries([text for text in texts if text is not None]).tobytes()


def test_there_may_be_no_text(embedder: Embedder) -> None:
    for texts in ([], [None, None]):
        frame = daft.from_pydict({"text": daft.Series.from_pylist(texts, dtype=daft.DataType.string())})
        assert rows(frame.with_column("vector", embed("text", embedder))) == texts


def test_what_is_no_text_is_an_error(embedder: Embedder) -> None:
    with pytest.raises(Exception, match="the column is of int64"):
        rows(daft.from_pydict({"text": [1]}).with_column("vector", embed("text", embedder)))
