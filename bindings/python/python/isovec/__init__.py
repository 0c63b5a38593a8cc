"""Text and picture embeddings: the same vectors as isovec's Rust crate and npm package.

>>> from isovec import Embedder
>>> embedder = Embedder("sentence-transformers/all-MiniLM-L6-v2")
>>> embedder.embed(["cats purr", "stocks fell"]).shape
(2, 384)
"""

from ._errors import (
    ConfigError,
    FileError,
    ForkError,
    HubError,
    IncompatibleIndexError,
    InvalidModelError,
    IsovecError,
    ModelNotFoundError,
    OverloadedError,
    TextError,
    UnsupportedModelError,
)
from ._isovec import (
    Classifier,
    CompactEmbeddings,
    Embedder,
    Embeddings,
    ImageClassifier,
    ImageEmbedder,
    Model,
    MultiVectorEmbedder,
    MultiVectorEmbeddings,
    ProfileSession,
    Reranker,
    SparseEmbedder,
    SparseEmbeddings,
    TextReader,
    __version__,
    fuse,
    hocr,
)
from ._results import (
    Chunk,
    ChunkPlace,
    EmbeddedChunks,
    Hit,
    Label,
    PictureText,
    Ranked,
    SparseVector,
    TextLine,
    Word,
)
from ._sentence_transformer import SentenceTransformer
from ._spec import EmbedderSpec

__all__ = [
    "Chunk",
    "ChunkPlace",
    "Classifier",
    "CompactEmbeddings",
    "ConfigError",
    "EmbeddedChunks",
    "Embedder",
    "EmbedderSpec",
    "Embeddings",
    "FileError",
    "ForkError",
    "Hit",
    "HubError",
    "ImageClassifier",
    "ImageEmbedder",
    "IncompatibleIndexError",
    "InvalidModelError",
    "IsovecError",
    "Label",
    "Model",
    "ModelNotFoundError",
    "MultiVectorEmbedder",
    "MultiVectorEmbeddings",
    "OverloadedError",
    "PictureText",
    "ProfileSession",
    "Ranked",
    "Reranker",
    "SentenceTransformer",
    "SparseEmbedder",
    "SparseEmbeddings",
    "SparseVector",
    "TextError",
    "TextLine",
    "TextReader",
    "UnsupportedModelError",
    "Word",
    "__version__",
    "fuse",
    "hocr",
]
