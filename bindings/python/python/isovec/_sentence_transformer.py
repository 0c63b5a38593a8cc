"""A class with the calls of sentence-transformers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ._isovec import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class SentenceTransformer:
    """The calls of `sentence_transformers.SentenceTransformer` for programs that move to isovec, without torch.

    What differs:

    ============================  ==========================================================================
    sentence-transformers         here
    ============================  ==========================================================================
    torch                         not needed; results are numpy arrays, and `similarity` gives one too
    ``convert_to_tensor=True``    a ``TypeError``; ``torch.from_numpy(model.encode(texts))`` copies nothing
    ``precision``, token          a ``TypeError``; only ``"float32"`` and ``"sentence_embedding"``
    embeddings (``output_value``)
    ``batch_size``                has no effect: batches are planned by the lengths of the texts
    ``show_progress_bar``         has no effect
    ``truncate_dim``              vectors of unit length are scaled to unit length again
    ``device="cuda:1"``           any GPU's name is isovec's ``device="gpu"``
    ``model.tokenize``, ``fit``,  none
    pools of processes
    a text that is no ``str``     a ``TypeError`` that names its place
    ============================  ==========================================================================
    """

    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        device: str | None = None,
        prompts: dict[str, str] | None = None,
        cache_folder: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        truncate_dim: int | None = None,
    ) -> None:
        source = model_name_or_path
        if os.path.exists(source):
            source = Path(source)
        elif isinstance(source, str) and "/" not in source:
            source = f"sentence-transformers/{source}"
        self.embedder = Embedder(
            source,
            device=None if device is None else "cpu" if device == "cpu" else "gpu",
            dimension=truncate_dim,
            cache_dir=cache_folder,
            revision=revision,
            offline=local_files_only or None,
            config={"text": {"prompts": prompts or {}}},
        )
        """The model itself, with all that isovec can do."""

    def encode(
        self,
        sentences: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: Literal["float32"] = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Any:
        """The vectors of texts, `[n, dimension]`, or of one text, `[dimension]`."""
        if output_value != "sentence_embedding" or precision != "float32":
            raise TypeError("only output_value='sentence_embedding' with precision='float32' is there")
        if convert_to_tensor:
            raise TypeError("convert_to_tensor needs torch, which isovec does not; use torch.from_numpy(encode(…))")
        one = isinstance(sentences, str)
        vectors = self.embedder.embed(
            [sentences] if isinstance(sentences, str) else sentences,
            prompt=None if prompt is not None else prompt_name,
            prefix=prompt,
            dimension=truncate_dim,
            normalize=normalize_embeddings or None,
        )
        if not convert_to_numpy:
            return vectors[0] if one else list(vectors)
        return vectors[0] if one else vectors

    def encode_query(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """As `encode`, under the model's prompt for queries."""
        return self.encode(sentences, **{"prompt_name": "query", **options})

    def encode_document(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """As `encode`, under the model's prompt for documents."""
        return self.encode(sentences, **{"prompt_name": "passage", **options})

    def similarity(self, embeddings1: ArrayLike, embeddings2: ArrayLike) -> NDArray[np.float32]:
        """The score of every pair, `[n, m]`, by the model's own measure."""
        import numpy as np

        return self.embedder.similarity(np.atleast_2d(embeddings1), np.atleast_2d(embeddings2))

    @property
    def similarity_fn_name(self) -> str:
        """The name of the model's measure."""
        return self.embedder.metric

    @property
    def max_seq_length(self) -> int:
        """Tokens of a text that the model sees."""
        return self.embedder.max_length

    def get_sentence_embedding_dimension(self) -> int:
        """Components of a vector."""
        return self.embedder.dimension

    def __repr__(self) -> str:
        return f"SentenceTransformer({self.embedder!r})"
