"""isovec as the embeddings of LlamaIndex (`pip install llama-index-core`)."""

from __future__ import annotations

import os
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks.base import CallbackManager

from ._isovec import Embedder
from ._lists import row, rows

BATCH = 2048
"""Texts of a call: as many as LlamaIndex allows, since isovec plans batches by the lengths of the texts."""


class IsovecEmbedding(BaseEmbedding):
    """The embeddings of a model, for LlamaIndex's indices and retrievers.

    >>> from isovec.llama_index import IsovecEmbedding
    >>> embedding = IsovecEmbedding("sentence-transformers/all-MiniLM-L6-v2")
    """

    _embedder: Embedder = PrivateAttr()

    def __init__(
        self,
        model: Embedder | str | os.PathLike[str],
        *,
        embed_batch_size: int = BATCH,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        """Takes a loaded model, or what `Embedder` takes."""
        embedder = model if isinstance(model, Embedder) else Embedder(model, **options)
        super().__init__(
            model_name=embedder.model_name,
            embed_batch_size=embed_batch_size,
            callback_manager=callback_manager or CallbackManager([]),
        )
        self._embedder = embedder

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex writes into what it saves."""
        return "IsovecEmbedding"

    @property
    def embedder(self) -> Embedder:
        """The model underneath."""
        return self._embedder

    def _get_query_embedding(self, query: str) -> list[float]:
        return row(self._embedder.embed_query(query))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return row(await self._embedder.aembed_query(query))

    def _get_text_embedding(self, text: str) -> list[float]:
        return row(self._embedder.embed_passage(text))

    async def _aget_text_embedding(self, text: str) -> list[float]:
        [vector] = rows(await self._embedder.aembed_passages([text]))
        return vector

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return rows(self._embedder.embed_passages(texts))

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return rows(await self._embedder.aembed_passages(texts))
