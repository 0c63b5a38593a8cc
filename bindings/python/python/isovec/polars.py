"""isovec as an expression of Polars (`pip install polars`).

Importing it registers the namespace `isovec` of expressions: `pl.col("text").isovec.embed(model)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import TextError
from ._optional import missing
from ._spec import EmbedderSpec

try:
    import polars as pl
except ImportError as error:
    raise missing(__name__, "polars", error) from error

if TYPE_CHECKING:
    from ._spec import ModelLike


def embed(
    column: str | pl.Expr,
    model: ModelLike,
    *,
    prompt: str | None = None,
    prefix: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    **options: Any,
) -> pl.Expr:
    """The vectors of a column of texts, as arrays of a fixed width. A text that is null has a null.

    Takes what `EmbedderSpec` takes, or one.

    >>> import polars as pl
    >>> from isovec.polars import embed
    >>> texts = pl.DataFrame({"text": ["cats purr", None]})
    >>> vectors = texts.select(embed("text", "sentence-transformers/all-MiniLM-L6-v2"))
    """
    spec = EmbedderSpec.of(model, prompt=prompt, prefix=prefix, fingerprint=fingerprint, **options)
    texts = pl.col(column) if isinstance(column, str) else column
    return texts.map_batches(_Vectors(spec), return_dtype=pl.Array(pl.Float32, spec.dimension), is_elementwise=True)


@pl.api.register_expr_namespace("isovec")
class IsovecExpressions:
    """What isovec does with an expression of texts."""

    def __init__(self, expr: pl.Expr) -> None:
        """Takes the expression."""
        self._expr = expr

    def embed(self, model: ModelLike, **options: Any) -> pl.Expr:
        """As `isovec.polars.embed`."""
        return embed(self._expr, model, **options)


class _Vectors:
    """What Polars calls with a batch; a class, so that it is pickled without a model."""

    def __init__(self, spec: EmbedderSpec) -> None:
        self._spec = spec

    def __call__(self, texts: pl.Series) -> pl.Series:
        if texts.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
            raise TextError(f"the column {texts.name!r} is of {texts.dtype}, and one of strings is wanted", "InvalidText")
        there = texts.drop_nulls()
        vectors = pl.Series(texts.name, self._spec.embeddings(there.cast(pl.String)))
        if len(there) == len(texts):
            return vectors
        valid = texts.is_not_null()
        places = pl.select(pl.when(valid).then(valid.cum_sum() - 1)).to_series()
        return vectors.gather(places)
