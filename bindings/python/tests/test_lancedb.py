"""Vectors in LanceDB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BERT, PORTABLE
from isovec import Embedder
from stores import AWKWARD, K, TEXTS, by_signs, dense, each, embed, expected, same_order, tokens


def test_lancedb(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    pa = pytest.importorskip("pyarrow")
    (index, queries), (late, asked_late) = dense(), tokens()
    signs = index.compact("binary").numpy()

    def lists(rows: Any) -> Any:
        return pa.FixedSizeListArray.from_arrays(rows.reshape(-1), rows.shape[1])

    rows = pa.table({
        "id": range(len(index)),
        "vector": pa.array(index),
        "half": lists(index.numpy().astype(np.float16)),
        "signs": lists(signs),
        "tokens": pa.array([list(vectors) for vectors in each(late)], pa.list_(pa.list_(pa.float32(), late.dimension))),
    })
    rows = rows.replace_schema_metadata({"isovec.fingerprint": json.dumps(index.fingerprint)})
    lancedb.connect(tmp_path).create_table("texts", rows)
    table = lancedb.connect(tmp_path).open_table("texts")
    assert queries.check_compatible(table.schema.metadata[b"isovec.fingerprint"].decode()) is None
    kept = table.to_arrow()
    for name, whole in (("vector", index.numpy()), ("half", index.numpy().astype(np.float16)), ("signs", signs)):
        assert kept[name].combine_chunks().flatten().to_numpy().tobytes() == whole.tobytes()
    for vectors, own in zip(kept["tokens"].to_pylist(), each(late), strict=True):
        assert np.array(vectors, np.float32).tobytes() == own.tobytes()

    def ask(query: Any, column: str, metric: str, k: int = K) -> list[int]:
        found = table.search(query, vector_column_name=column).distance_type(metric).limit(k)
        return [row["id"] for row in found.to_list()]

    for metric in ("dot", "cosine", "l2"):
        same_order(lambda k: index.search(queries, k), [ask(query, "vector", metric) for query in queries.numpy()])
    same_order(lambda k: index.search(queries, k), [ask(query, "half", "cosine") for query in queries.numpy()], near=1e-3)
    same_order(lambda k: late.search(asked_late, k), [ask(query, "tokens", "cosine") for query in each(asked_late)])
    asked = queries.compact("binary").numpy()
    near = [ask(query, "signs", "hamming", 4 * K) for query in asked]
    again = [sorted(ids, key=lambda at: -float(index.numpy()[at] @ query))[:K] for ids, query in zip(near, queries.numpy())]
    by_signs(dense(), near, again)


def test_a_parquet_file_of_the_program_is_a_table_of_lancedb(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = lancedb.connect(tmp_path).create_table("texts", parquet.read_table(embed(tmp_path, "passages.parquet")))
    query = Embedder(BERT, config=PORTABLE).embeddings(TEXTS[:1], prompt="query")
    assert query.check_compatible(table.schema.metadata[b"isovec.fingerprint"].decode()) is None
    kept = table.to_arrow()
    assert kept["text"].to_pylist() == AWKWARD
    assert kept["embedding"].combine_chunks().flatten().to_numpy().tobytes() == expected().tobytes()
