"""isovec as a function of Daft (`pip install daft`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _arrow
from ._optional import missing
from ._spec import EmbedderSpec

try:
    import daft
except ImportError as error:
    raise missing(__name__, "daft", error) from error

if TYPE_CHECKING:
    import pyarrow as pa

    from ._spec import ModelLike


def embed(
    column: str | daft.Expression,
    model: ModelLike,
    *,
    prompt: str | None = None,
    prefix: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    max_concurrency: int | None = None,
    use_process: bool | None = None,
    cpus: float | None = None,
    gpus: float = 0,
    batch_size: int = 1024,
    **options: Any,
) -> daft.Expression:
    """The vectors of a column of texts, of Daft's type `Embedding`. A text that is null has a null.

    Takes what `EmbedderSpec` takes, or one. `max_concurrency`, `use_process`, `cpus` and `gpus` are those of `daft.cls`,
    `batch_size` that of `daft.method.batch`.

    >>> import daft
    >>> from isovec.daft import embed
    >>> texts = daft.from_pydict({"text": ["cats purr", None]})
    >>> vectors = texts.with_column("vector", embed("text", "sentence-transformers/all-MiniLM-L6-v2"))
    """
    spec = EmbedderSpec.of(model, prompt=prompt, prefix=prefix, fingerprint=fingerprint, **options)
    number = daft.DataType.float32()

    @daft.cls(cpus=cpus, gpus=gpus, use_process=use_process, max_concurrency=max_concurrency)
    class IsovecEmbedder:
        def __init__(self, spec: EmbedderSpec) -> None:
            self.spec = spec

        # As lists, because Daft computes what gives embeddings in its own process, whatever it was told.
        @daft.method.batch(  # type: ignore[untyped-decorator]
            return_dtype=daft.DataType.fixed_size_list(number, spec.dimension), batch_size=batch_size
        )
        def embed(self, texts: daft.Series) -> pa.FixedSizeListArray:
            return _arrow.fixed_lists(self.spec, texts.to_arrow())

    vectors: daft.Expression = IsovecEmbedder(spec).embed(daft.col(column) if isinstance(column, str) else column)
    return vectors.cast(daft.DataType.embedding(number, spec.dimension))
