"""isovec as the embeddings of LangChain (`pip install langchain-core`)."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.embeddings import Embeddings

from ._isovec import Embedder
from ._lists import row, rows


class IsovecEmbeddings(Embeddings):
    """The embeddings of a model, for LangChain's vector stores and retrievers.

    >>> from isovec.langchain import IsovecEmbeddings
    >>> embeddings = IsovecEmbeddings("sentence-transformers/all-MiniLM-L6-v2")
    """

    def __init__(self, model: Embedder | str | os.PathLike[str], **options: Any) -> None:
        """Takes a loaded model, or what `Embedder` takes."""
        self.embedder = model if isinstance(model, Embedder) else Embedder(model, **options)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts to search in, under the model's passage prompt."""
        return rows(self.embedder.embed_passages(texts))

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text to search with, under the model's query prompt."""
        return row(self.embedder.embed_query(text))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """As `embed_documents`; concurrent calls are joined into batches."""
        return rows(await self.embedder.aembed_passages(texts))

    async def aembed_query(self, text: str) -> list[float]:
        """As `embed_query`; concurrent calls are joined into batches."""
        return row(await self.embedder.aembed_query(text))
