"""Vectors in Qdrant: in the local mode of its client, and in its engine as a library."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isovec import Hit, SparseVector, fuse
from stores import K, TEXTS, by_signs, dense, each, f32, pair, same_order, sparse, tokens


@pytest.fixture
def qdrant() -> Any:
    models = pytest.importorskip("qdrant_client.models", exc_type=ImportError)
    return models


def test_qdrant(
    qdrant: Any,
    tmp_path: Path,
) -> None:
    from qdrant_client import QdrantClient

    models, (index, queries), (words, asked_words), (late, asked_late) = qdrant, dense(), sparse(), tokens()

    def named(vector: SparseVector) -> Any:
        indices, values = pair(vector)
        return models.SparseVector(indices=indices, values=values)

    client = QdrantClient(path=str(tmp_path))
    max_sim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    client.create_collection(
        "texts",
        vectors_config={
            "dense": models.VectorParams(size=index.dimension, distance=models.Distance.DOT),
            "tokens": models.VectorParams(size=late.dimension, distance=models.Distance.DOT, multivector_config=max_sim),
        },
        sparse_vectors_config={"words": models.SparseVectorParams()},
        metadata={"isovec.fingerprint": json.dumps(index.fingerprint)},
    )
    points = (
        models.PointStruct(id=at, vector={"dense": row.tolist(), "words": named(words[at]), "tokens": late[at].tolist()})
        for at, row in enumerate(index.numpy())
    )
    client.upload_points("texts", points, batch_size=7)
    client.close()

    client = QdrantClient(path=str(tmp_path))
    assert queries.check_compatible(client.get_collection("texts").config.metadata["isovec.fingerprint"]) is None
    for point in client.retrieve("texts", list(range(len(TEXTS))), with_vectors=True):
        kept = point.vector
        assert np.array(kept["dense"], np.float32).tobytes() == index.numpy()[point.id].tobytes()
        assert np.array(kept["tokens"], np.float32).tobytes() == late[point.id].tobytes()
        assert (kept["words"].indices, f32(kept["words"].values)) == pair(words[point.id])

    def ask(query: Any, **parameters: Any) -> list[Hit]:
        return [Hit(point.id, point.score) for point in client.query_points("texts", query=query, **parameters).points]

    def ids(found: Iterable[list[Hit]]) -> list[list[int]]:
        return [[hit.index for hit in hits] for hits in found]

    same_order(lambda k: index.search(queries, k), ids(ask(query, using="dense", limit=K) for query in queries.numpy()))
    same_order(lambda k: words.search(asked_words, k), ids(ask(named(query), using="words", limit=K) for query in each(asked_words)))
    same_order(lambda k: late.search(asked_late, k), ids(ask(query, using="tokens", limit=K) for query in each(asked_late)))

    for query, row in zip(each(asked_words), queries.numpy(), strict=True):
        both = [
            models.Prefetch(query=row.tolist(), using="dense", limit=20),
            models.Prefetch(query=named(query), using="words", limit=20),
        ]
        joined = ask(models.RrfQuery(rrf=models.Rrf(k=61)), prefetch=both, limit=K)
        own = fuse([ask(row, using="dense", limit=20), ask(named(query), using="words", limit=20)], K)
        np.testing.assert_allclose([hit.score for hit in joined], [hit.score for hit in own], rtol=1e-6)
    client.close()


def test_the_engine_of_qdrant(
    tmp_path: Path,
) -> None:
    q = pytest.importorskip("qdrant_edge", exc_type=ImportError)
    (index, queries), (words, asked_words), (late, asked_late) = dense(), sparse(), tokens()
    n = index.dimension

    def named(vector: SparseVector) -> Any:
        indices, values = pair(vector)
        return q.SparseVector(indices=indices, values=values)

    shard = q.EdgeShard.create(
        str(tmp_path / "shard"),
        q.EdgeConfig(
            vectors={
                "dense": q.EdgeVectorParams(size=n, distance=q.Distance.Dot),
                "half": q.EdgeVectorParams(size=n, distance=q.Distance.Dot, datatype=q.VectorStorageDatatype.Float16),
                "signs": q.EdgeVectorParams(size=n, distance=q.Distance.Dot, quantization_config=q.BinaryQuantizationConfig()),
                "tokens": q.EdgeVectorParams(
                    size=late.dimension,
                    distance=q.Distance.Dot,
                    multivector_config=q.MultiVectorConfig(comparator=q.MultiVectorComparator.MaxSim),
                ),
            },
            sparse_vectors={"words": q.EdgeSparseVectorParams()},
            # Smaller segments have no quantised vectors otherwise.
            optimizers=q.EdgeOptimizersConfig(indexing_threshold=1),
        ),
    )
    points = []
    for at, row in enumerate(index.numpy()):
        same = {name: row.tolist() for name in ("dense", "half", "signs")}
        points.append(q.Point(id=at, vector={**same, "words": named(words[at]), "tokens": late[at].tolist()}))
    shard.update(q.UpdateOperation.upsert_points(points))

    kept = shard.retrieve(list(range(len(TEXTS))), with_payload=False, with_vector=True)
    assert len(kept) == len(TEXTS)
    for point in kept:
        assert np.array(point.vector["dense"], np.float32).tobytes() == index.numpy()[point.id].tobytes()
        assert np.array(point.vector["tokens"], np.float32).tobytes() == late[point.id].tobytes()
        assert np.array(point.vector["half"], np.float16).tobytes() == index.numpy()[point.id].astype(np.float16).tobytes()

    def ask(query: Any, using: str, k: int = K, **quantized: Any) -> list[int]:
        params = q.SearchParams(exact=not quantized, quantization=q.QuantizationSearchParams(**quantized) if quantized else None)
        return [point.id for point in shard.query(q.QueryRequest(limit=k, query=q.Query.Nearest(query, using=using), params=params))]

    same_order(lambda k: index.search(queries, k), [ask(query.tolist(), "dense") for query in queries.numpy()])
    same_order(lambda k: index.search(queries, k), [ask(query.tolist(), "half") for query in queries.numpy()], near=1e-3)
    same_order(lambda k: words.search(asked_words, k), [ask(named(query), "words") for query in each(asked_words)])
    same_order(lambda k: late.search(asked_late, k), [ask(query.tolist(), "tokens") for query in each(asked_late)])
    assert shard.optimize()
    near = [ask(query.tolist(), "signs", 4 * K, rescore=False) for query in queries.numpy()]
    again = [ask(query.tolist(), "signs", rescore=True, oversampling=4.0) for query in queries.numpy()]
    by_signs(dense(), near, again)
    shard.close()
