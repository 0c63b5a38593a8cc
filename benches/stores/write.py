"""How long stores take to be given the same rows in several ways: 4,000 vectors of 384 components, the ways in turn, five rounds.

    PYTHON benches/stores/write.py    # the Python of `cargo xtask setup python`
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import psycopg
import pyarrow as pa
import sqlite_vec
from pgvector import Vector
from pgvector.psycopg import register_vector

sys.path.insert(0, str(Path(__file__).parents[2] / "bindings" / "python" / "tests"))
import postgres

try:
    import pysqlite3 as sqlite3
except ImportError:
    import sqlite3

ROWS, DIMENSION, ROUNDS = 4000, 384, 5
VECTORS = np.random.default_rng(0).standard_normal((ROWS, DIMENSION)).astype(np.float32)
TABLE = f"DROP TABLE IF EXISTS texts; CREATE TABLE texts (id bigint PRIMARY KEY, vector vector({DIMENSION}))"


def copy(db: Any, form: str) -> None:
    db.execute(TABLE)
    with db.cursor().copy(f"COPY texts FROM STDIN WITH (FORMAT {form})") as rows:
        if form == "binary":
            rows.set_types(["int8", "vector"])
        for at, row in enumerate(VECTORS):
            rows.write_row((at, Vector(row)))


def insert(db: Any) -> None:
    db.execute(TABLE)
    with db.transaction():
        db.cursor().executemany("INSERT INTO texts VALUES (%s, %s)", [(at, Vector(row)) for at, row in enumerate(VECTORS)])


def sqlite(form: Callable[[Any], Any]) -> None:
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    db.execute(f"CREATE VIRTUAL TABLE texts USING vec0(id INTEGER PRIMARY KEY, vector FLOAT[{DIMENSION}])")
    with db:
        db.executemany("INSERT INTO texts VALUES (?, ?)", ((at, form(row)) for at, row in enumerate(VECTORS)))


def lance(rows: Callable[[], Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lancedb.connect(folder).create_table("texts", rows())


def arrow() -> Any:
    return pa.table({"id": range(ROWS), "vector": pa.FixedSizeListArray.from_arrays(VECTORS.reshape(-1), DIMENSION)})


def dicts() -> Any:
    return [{"id": at, "vector": row.tolist()} for at, row in enumerate(VECTORS)]


def main() -> None:
    with postgres.server() as variables:
        os.environ.update(variables)
        with psycopg.connect(autocommit=True) as db:
            db.execute("CREATE EXTENSION vector")
            register_vector(db)
            ways: dict[str, Callable[[], None]] = {
                "pgvector, COPY, binary": lambda: copy(db, "binary"),
                "pgvector, COPY, text": lambda: copy(db, "text"),
                "pgvector, executemany": lambda: insert(db),
                "sqlite-vec, bytes": lambda: sqlite(lambda row: row),
                "sqlite-vec, JSON": lambda: sqlite(lambda row: json.dumps(row.tolist())),
                "LanceDB, Arrow": lambda: lance(arrow),
                "LanceDB, dicts": lambda: lance(dicts),
            }
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, write in ways.items():
                    began = time.perf_counter()
                    write()
                    taken[way].append(time.perf_counter() - began)
    for way, times in taken.items():
        print(f"{way}: {statistics.median(times):.3f} s ({min(times):.3f} to {max(times):.3f})")


if __name__ == "__main__":
    main()
