"""isovec in the executors of Spark (`pip install "pyspark[sql]"`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from . import _arrow
from ._errors import ConfigError
from ._optional import missing
from ._spec import EmbedderSpec

try:
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, FloatType, StructField, StructType
except ImportError as error:
    raise missing(__name__, '"pyspark[sql]"', error) from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ._spec import ModelLike

VECTOR = ArrayType(FloatType(), containsNull=False)
"""Spark's type of a vector."""


def embed(
    frame: DataFrame,
    model: ModelLike,
    *,
    column: str = "text",
    into: str = "vector",
    prompt: str | None = None,
    prefix: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """The frame with the vectors of a column of texts, by `mapInArrow`. A text that is null has a null.

    Takes what `EmbedderSpec` takes, or one. A task computes with as many threads as Spark gave it CPUs (`spark.task.cpus`), unless
    the model's knobs say how many.
    """
    spec = EmbedderSpec.of(model, prompt=prompt, prefix=prefix, fingerprint=fingerprint, **options)
    _arrow.must_have(frame.columns, column)
    _arrow.must_not_have(frame.columns, into)
    schema = StructType([*frame.schema.fields, StructField(into, VECTOR)])
    return frame.mapInArrow(_Batches(spec, column, into), schema)


def embed_udf(
    model: ModelLike,
    *,
    kind: Literal["arrow", "pandas"] = "arrow",
    prompt: str | None = None,
    prefix: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A function of columns: the vectors of texts. `"arrow"` needs Spark 4.1, `"pandas"` runs on older ones, too.

    Takes what `EmbedderSpec` takes, or one.

    >>> from isovec.spark import embed_udf
    >>> vector = embed_udf("sentence-transformers/all-MiniLM-L6-v2")
    >>> # frame.withColumn("vector", vector("text")); spark.udf.register("embed", vector)
    """
    spec = EmbedderSpec.of(model, prompt=prompt, prefix=prefix, fingerprint=fingerprint, **options)
    if kind == "arrow":
        if not hasattr(functions, "arrow_udf"):
            raise ConfigError('this Spark has no functions of Arrow, which came with 4.1; kind="pandas" runs on it', "Config")

        def of_array(texts: pa.Array) -> pa.Array:
            return _arrow.lists(spec, texts, cpus=_cpus())

        return functions.arrow_udf(of_array, VECTOR)
    if kind == "pandas":
        import pandas as pd

        def of_series(texts: pd.Series) -> pd.Series:
            return pd.Series(_rows(spec, pa.Array.from_pandas(texts)), dtype=object)

        # Spark tells by its types what kind of a function it is.
        of_series.__annotations__ = {"texts": pd.Series, "return": pd.Series}
        return functions.pandas_udf(of_series, VECTOR)
    raise ConfigError(f'`kind` is {kind!r}, and has to be "arrow" or "pandas"', "Config")


class _Batches:
    """What Spark calls with the batches of a partition."""

    def __init__(self, spec: EmbedderSpec, column: str, into: str) -> None:
        self._spec, self._column, self._into = spec, column, into

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            vectors = _arrow.lists(self._spec, batch.column(self._column), cpus=_cpus())
            yield pa.RecordBatch.from_arrays([*batch.columns, vectors], [*batch.schema.names, self._into])


def _rows(spec: EmbedderSpec, texts: pa.Array) -> list[Any]:
    """The vectors as arrays of numpy, with `None` for a null."""
    vectors = iter(spec.embeddings(texts.drop_null(), cpus=_cpus()).numpy())
    return [next(vectors) if there.as_py() else None for there in texts.is_valid()]


def _cpus() -> int | None:
    """The CPUs of the task that this runs in."""
    task = TaskContext.get()
    return None if task is None else int(task.cpus())
