"""Vectors in SQLite, in tables of sqlite-vec and in plain ones."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from stores import K, by_signs, dense, embed, expected, pair, same_order, sparse


def vec0(sqlite: ModuleType) -> Any:
    import sqlite_vec

    db = sqlite.connect(":memory:")
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    return db


def test_sqlite_vec(sqlite: ModuleType) -> None:
    index, queries = dense()
    n = index.dimension
    codes, signs = index.compact("int8"), index.compact("binary")
    db = vec0(sqlite)
    db.execute(
        f"CREATE VIRTUAL TABLE texts USING vec0(id INTEGER PRIMARY KEY, vector FLOAT[{n}] distance_metric=cosine, "
        f"codes INT8[{n}] distance_metric=cosine, signs BIT[{n}])"
    )
    rows = zip(range(len(index)), index.numpy(), codes.numpy(), signs.numpy())
    db.executemany("INSERT INTO texts VALUES (?, ?, vec_int8(?), vec_bit(?))", rows)
    kept = db.execute("SELECT vector, codes, signs FROM texts ORDER BY id").fetchall()
    for at, whole in enumerate((index.numpy(), codes.numpy(), signs.numpy())):
        assert b"".join(row[at] for row in kept) == whole.tobytes()

    def ask(query: str, *parameters: Any) -> list[int]:
        return [at for (at,) in db.execute(query, parameters)]

    near = "SELECT id FROM texts WHERE {} AND k = {} ORDER BY distance"
    same_order(lambda k: index.search(queries, k), [ask(near.format("vector MATCH ?", K), query) for query in queries.numpy()])

    rounded = codes.numpy().astype(np.float64)
    for query in queries.compact("int8").numpy():
        ids = ask(near.format("codes MATCH vec_int8(?)", K), query)
        scores = rounded @ query.astype(np.float64) / np.linalg.norm(rounded, axis=1)
        np.testing.assert_allclose(scores[ids], np.sort(scores)[::-1][:K], rtol=1e-6)

    candidates = near.format("signs MATCH vec_bit(?)", 4 * K)
    again = f"SELECT id FROM texts WHERE id IN ({candidates}) ORDER BY vec_distance_cosine(vector, ?) LIMIT {K}"
    pairs = list(zip(queries.compact("binary").numpy(), queries.numpy()))
    by_signs(dense(), [ask(candidates, bits) for bits, _ in pairs], [ask(again, bits, query) for bits, query in pairs])


def test_a_table_of_words() -> None:
    index, queries = sparse()
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE words (word INTEGER, id INTEGER, weight REAL, PRIMARY KEY (word, id)) WITHOUT ROWID")
    for at in range(len(index)):
        db.executemany("INSERT INTO words VALUES (?, ?, ?)", [(word, at, weight) for word, weight in zip(*pair(index[at]))])
    search = f"""
        SELECT words.id, sum(weight * (asked.value ->> 1)) AS score
        FROM json_each(?) AS asked JOIN words ON word = asked.value ->> 0
        GROUP BY words.id ORDER BY score DESC LIMIT {K}
    """
    found = [[at for at, _ in db.execute(search, [json.dumps([*zip(*pair(queries[at]))])])] for at in range(len(queries))]
    same_order(lambda k: index.search(queries, k), found)


def test_lines_of_json_are_vectors_of_sqlite_vec(tmp_path: Path, sqlite: ModuleType) -> None:
    db = vec0(sqlite)
    lines = embed(tmp_path, "passages.jsonl").read_text(encoding="utf-8").splitlines()
    db.execute("CREATE VIRTUAL TABLE texts USING vec0(vector FLOAT[32])")
    db.executemany("INSERT INTO texts (vector) VALUES (json_extract(?, '$.embedding'))", [(line,) for line in lines])
    assert b"".join(vector for (vector,) in db.execute("SELECT vector FROM texts ORDER BY rowid")) == expected().tobytes()
