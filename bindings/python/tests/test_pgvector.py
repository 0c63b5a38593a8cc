"""Vectors in PostgreSQL with pgvector, of a server that is started here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from isovec import SparseVector
from stores import AWKWARD, K, by_signs, dense, each, embed, expected, f32, pair, same_order, sparse, tokens


@pytest.mark.usefixtures("database")
def test_pgvector() -> None:
    import psycopg
    from pgvector import Bit, HalfVector, Vector
    from pgvector import SparseVector as Words
    from pgvector.psycopg import register_vector

    (index, queries), (words, asked_words), (late, asked_late) = dense(), sparse(), tokens()
    n, vocabulary = index.dimension, words.vocabulary_size

    def sparsevec(vector: SparseVector) -> Any:
        return Words(dict(zip(*pair(vector))), vocabulary)

    with psycopg.connect(autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
        register_vector(db)
        db.execute(
            f"CREATE TABLE texts (id bigint PRIMARY KEY, vector vector({n}), half halfvec({n}), signs bit({n}), "
            f"words sparsevec({vocabulary}), tokens vector({late.dimension})[])"
        )
        with db.cursor().copy("COPY texts FROM STDIN WITH (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "vector", "halfvec", "bit", "sparsevec", "vector[]"])
            for at, row in enumerate(index.numpy()):
                several = [Vector(vector) for vector in late[at]]
                copy.write_row((at, Vector(row), HalfVector(row), Bit(row > 0), sparsevec(words[at]), several))
        signs = index.compact("binary").numpy()
        for at, vector, half, bits, weights, several in db.execute("SELECT * FROM texts").fetchall():
            row = index.numpy()[at]
            assert vector.to_numpy().tobytes() == row.tobytes()
            assert half.to_numpy().tobytes() == row.astype(np.float16).tobytes()
            assert np.packbits([bit == "1" for bit in bits]).tobytes() == signs[at].tobytes()
            assert (weights.indices(), f32(weights.values())) == pair(words[at])
            assert b"".join(vector.to_numpy().tobytes() for vector in several) == late[at].tobytes()

        def ask(query: str, **parameters: Any) -> list[int]:
            return [at for (at,) in db.execute(query, parameters)]

        search = f"SELECT id FROM texts ORDER BY {{}} LIMIT {K}"
        vectors = [Vector(query) for query in queries.numpy()]
        for operator in ("<#>", "<=>", "<->"):
            found = [ask(search.format(f"vector {operator} %(q)s"), q=query) for query in vectors]
            same_order(lambda k: index.search(queries, k), found)
        found = [ask(search.format("half <#> %(q)s"), q=HalfVector(query)) for query in queries.numpy()]
        same_order(lambda k: index.search(queries, k), found, near=1e-3)

        candidates = f"SELECT id FROM texts ORDER BY signs <~> %(b)s LIMIT {4 * K}"
        again = f"SELECT id FROM texts WHERE id IN ({candidates}) ORDER BY vector <#> %(q)s LIMIT {K}"
        pairs = [(Bit(query > 0), Vector(query)) for query in queries.numpy()]
        by_signs(dense(), [ask(candidates, b=bits) for bits, _ in pairs], [ask(again, b=bits, q=query) for bits, query in pairs])

        search = f"SELECT id FROM texts WHERE words <#> %(q)s < 0 ORDER BY words <#> %(q)s LIMIT {K}"
        found = [ask(search, q=sparsevec(asked_words[at])) for at in range(len(asked_words))]
        same_order(lambda k: words.search(asked_words, k), found)
        # A text without words has a vector, too.
        assert ask(search, q=Words({}, vocabulary)) == []

        db.execute("""
            CREATE FUNCTION max_sim(query vector[], passage vector[]) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
                SELECT sum((SELECT max(-(q <#> p)) FROM unnest(passage) AS p)) FROM unnest(query) AS q
            $$
        """)
        search = f"SELECT id FROM texts ORDER BY max_sim(%(q)s, tokens) DESC LIMIT {K}"
        found = [ask(search, q=[Vector(vector) for vector in query]) for query in each(asked_late)]
        same_order(lambda k: late.search(asked_late, k), found)


@pytest.mark.usefixtures("database")
def test_lines_of_json_are_vectors_of_pgvector(tmp_path: Path) -> None:
    import psycopg
    from pgvector.psycopg import register_vector

    lines = embed(tmp_path, "passages.jsonl").read_text(encoding="utf-8")
    chapter = (ROOT / "docs" / "vector-stores.md").read_text(encoding="utf-8")
    commands = chapter.split("```text\nCREATE TABLE lines")[1].split("```")[0].replace("(384)", "(32)")
    made, copied, kept = ("CREATE TABLE lines" + commands).splitlines()
    # What psql makes of its own `\copy`.
    assert copied.startswith("\\copy lines FROM 'passages.jsonl' WITH (")
    copied = copied.replace("\\copy", "COPY").replace("'passages.jsonl'", "STDIN").removesuffix(";")
    with psycopg.connect(autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
        register_vector(db)
        db.execute(made)
        with db.cursor().copy(copied) as copy:
            copy.write(lines)
        db.execute(kept)
        found = db.execute("SELECT text, vector FROM texts").fetchall()
    assert [text for text, _ in found] == AWKWARD
    assert b"".join(vector.to_numpy().tobytes() for _, vector in found) == expected().tobytes()
