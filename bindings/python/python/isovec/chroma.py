"""isovec as an embedding function of Chroma (`pip install chromadb`).

Importing it registers the function, so that a collection that was made with it finds it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
from chromadb.utils.embedding_functions import register_embedding_function

from ._isovec import Embedder

SPACES: dict[str, Space] = {"cosine": "cosine", "dot": "ip", "euclidean": "l2"}


@register_embedding_function
class IsovecEmbeddingFunction(EmbeddingFunction[Documents]):
    """The embeddings of a model, for the collections of Chroma.

    >>> from isovec.chroma import IsovecEmbeddingFunction
    >>> function = IsovecEmbeddingFunction("sentence-transformers/all-MiniLM-L6-v2")
    """

    def __init__(self, model: str | os.PathLike[str], **options: Any) -> None:
        """Takes what `Embedder` takes. A collection keeps it as JSON, and loads the model by it again."""
        self.embedder = Embedder(model, **options)
        # A path stays one: as a str without a separator it would be an id of the hub.
        self._config = {"model": os.fspath(model), "is_path": not isinstance(model, str), "options": options}

    def __call__(self, input: Documents) -> Embeddings:
        """The vectors of documents, under the model's passage prompt."""
        return list(self.embedder.embed_passages(input))

    def embed_query(self, input: Documents) -> Embeddings:
        """The vectors of texts to search with, under the model's query prompt."""
        return list(self.embedder.embed_queries(input))

    @staticmethod
    def name() -> str:
        """The name under which Chroma finds it."""
        return "isovec"

    def default_space(self) -> Space:
        """How the model means its vectors to be compared; cosine for the Manhattan distance, which Chroma lacks."""
        return SPACES.get(self.embedder.metric, "cosine")

    def get_config(self) -> dict[str, Any]:
        """What a collection keeps."""
        return self._config

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> IsovecEmbeddingFunction:
        """Loads the model of what a collection has kept."""
        model = config["model"]
        return IsovecEmbeddingFunction(Path(model) if config["is_path"] else model, **config["options"])

    def validate_config_update(self, old_config: dict[str, Any], new_config: dict[str, Any]) -> None:
        """Refuses another model for vectors that are there already."""
        if old_config["model"] != new_config["model"]:
            raise ValueError(
                f"the collection has vectors of {old_config['model']!r}, which cannot be compared with those of "
                f"{new_config['model']!r}; make another collection"
            )
