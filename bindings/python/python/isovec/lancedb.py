"""isovec as an embedding function of LanceDB (`pip install lancedb`).

Importing it puts the function into LanceDB's registry, under the name `isovec`. Tables that were made with it need the import, too.
"""

from __future__ import annotations

from typing import Any

from lancedb.embeddings import TextEmbeddingFunction, register
from pydantic import PrivateAttr

from ._isovec import Embedder


@register("isovec")  # type: ignore[no-untyped-call]
class IsovecEmbeddings(TextEmbeddingFunction):
    """The embeddings of a model, for the tables of LanceDB.

    >>> from isovec.lancedb import IsovecEmbeddings
    >>> function = IsovecEmbeddings.create(name="sentence-transformers/all-MiniLM-L6-v2")
    """

    name: str
    """An id of the hub, or a folder, written as a path: `./model`."""
    options: dict[str, Any] = {}
    """What `Embedder` takes besides."""

    _embedder: Embedder | None = PrivateAttr(default=None)

    @property
    def embedder(self) -> Embedder:
        """The model underneath, which is loaded when it is first needed."""
        if self._embedder is None:
            self._embedder = Embedder(self.name, **self.options)
        return self._embedder

    def ndims(self) -> int:
        """Components of a vector."""
        return self.embedder.dimension

    def compute_query_embeddings(self, query: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """The vectors of texts to search with, under the model's query prompt."""
        return list(self.embedder.embed_queries(self.sanitize_input(query)))

    def compute_query_embeddings_with_retry(self, *args: Any, **kwargs: Any) -> list[Any]:
        """As `compute_query_embeddings`: nothing is fetched, so no error passes by itself."""
        return self.compute_query_embeddings(*args, **kwargs)

    def compute_source_embeddings_with_retry(self, *args: Any, **kwargs: Any) -> list[Any]:
        """As `compute_source_embeddings`, for the same reason."""
        return list(self.compute_source_embeddings(*args, **kwargs))

    def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """The vectors of texts, under the model's passage prompt. A text that is null has none."""
        there = [text for text in texts if text is not None]
        vectors = iter(self.embedder.embed_passages(there))
        return [None if text is None else next(vectors) for text in texts]
