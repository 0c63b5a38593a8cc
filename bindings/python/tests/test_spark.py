"""Vectors in executors of Spark, in processes of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BERT, PORTABLE, change_weights, java
from isovec import ConfigError, Embedder, EmbedderSpec

pytest.importorskip("pyspark")


MISSING = java()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

SAME_BITS = {**PORTABLE, "session": {"deterministic_compute": True}}
TEXTS = [f"the dog number {at} has a tail" if at % 7 else None for at in range(400)]
THERE = [text for text in TEXTS if text is not None]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Two executors of one CPU each."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local-cluster[2,1,768]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.task.maxFailures", "1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def frame_of(spark: Any, partitions: int = 4) -> Any:
    rows = list(enumerate(TEXTS))
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), "id long, text string")


def check(rows: list[Any], expected: Any) -> None:
    """Checks that there are these vectors, and nulls elsewhere."""
    assert [row["vector"] is None for row in rows] == [text is None for text in TEXTS]
    there = np.array([row["vector"] for row in rows if row["vector"] is not None], np.float32)
    assert there.tobytes() == expected.tobytes()


def test_executors_give_the_vectors_of_python(spark: Any) -> None:
    from isovec.spark import VECTOR, embed

    embedder = Embedder(BERT, config=SAME_BITS)
    found = embed(frame_of(spark), embedder)
    assert found.columns == ["id", "text", "vector"] and found.schema["vector"].dataType == VECTOR
    check(found.orderBy("id").collect(), embedder.embed_passages(THERE))


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_a_function_of_columns_gives_them_too(spark: Any, kind: Any) -> None:
    from isovec.spark import embed_udf

    embedder = Embedder(BERT, config=SAME_BITS)
    vector = embed_udf(embedder, kind=kind, prompt="query")
    expected = embedder.embed_queries(THERE)
    check(frame_of(spark).withColumn("vector", vector("text")).orderBy("id").collect(), expected)
    spark.udf.register("embed", vector)
    frame_of(spark).createOrReplaceTempView("texts")
    check(spark.sql("SELECT id, embed(text) AS vector FROM texts ORDER BY id").collect(), expected)


def test_each_process_has_one_model_and_its_share_of_threads(spark: Any) -> None:
    spec = EmbedderSpec(BERT, config=SAME_BITS)

    def loads(batches: Any) -> Any:
        import pyarrow as pa

        from isovec import _spec
        from isovec.spark import _cpus

        for batch in batches:
            knobs = {knob["name"]: knob["used"] for knob in spec.embedder(cpus=_cpus()).effective_config()}
            one = [os.getpid(), len(_spec._loaded), int(knobs["session.intra_op_threads"])]
            yield pa.RecordBatch.from_arrays([pa.array([value]) for value in one], ["process", "models", "threads"])

    from isovec.spark import embed

    for _ in range(2):
        embed(frame_of(spark), spec).collect()
    found = frame_of(spark).mapInArrow(loads, "process long, models long, threads long").collect()
    assert os.getpid() not in {row["process"] for row in found}
    # The tests before had the same model.
    assert {row["models"] for row in found} == {1} == {row["threads"] for row in found}


def test_an_executor_without_the_model_says_so(spark: Any, folder: Path) -> None:
    from isovec.spark import embed

    planned = embed(frame_of(spark, 1), folder, config=PORTABLE)
    shutil.rmtree(folder)
    said = failure(planned)
    assert f"could not load the model '{folder}'" in said and "each machine needs the model's files" in said


def test_an_executor_with_another_model_is_refused(spark: Any, folder: Path) -> None:
    from isovec.spark import embed

    planned = embed(frame_of(spark, 1), folder, config=PORTABLE)
    change_weights(folder)
    assert "it is not the one that the work was planned with (weights: " in failure(planned)


def test_an_executor_of_another_version_is_refused(spark: Any) -> None:
    from isovec.spark import embed

    spec = EmbedderSpec(BERT, config=PORTABLE)
    spec._version = "0.0.1"
    assert "and the work was planned with 0.0.1" in failure(embed(frame_of(spark, 1), spec))


def test_what_cannot_be_is_an_error(spark: Any) -> None:
    from isovec.spark import embed, embed_udf

    embedder = Embedder(BERT, config=PORTABLE)
    frame = frame_of(spark, 1)
    with pytest.raises(ConfigError, match="no column 'body'; there are id, text"):
        embed(frame, embedder, column="body")
    with pytest.raises(ConfigError, match="a column 'id' already"):
        embed(frame, embedder, into="id")
    with pytest.raises(ConfigError, match="`kind` is 'row'"):
        embed_udf(embedder, kind="row")  # type: ignore[arg-type]
    assert "the column is of int64" in failure(embed(frame, embedder, column="id"))


def failure(planned: Any) -> str:
    """What a frame fails with."""
    with pytest.raises(Exception) as raised:
        planned.collect()
    return str(raised.value)
