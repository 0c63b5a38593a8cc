"""The types of what is compiled. `__doc__` of each name says what it does."""

import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._results import Chunk, EmbeddedChunks, Hit, Label, PictureText, Ranked, SparseVector, Word

if sys.version_info >= (3, 11):
    from typing import NotRequired, Self
else:
    from typing_extensions import NotRequired, Self

__version__: str

class ArrowArray(Protocol):
    """An array of Arrow's, of any library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class ArrowStream(Protocol):
    """A stream of Arrow's arrays, of any library."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Progress(TypedDict):
    """How far loading has come."""

    stage: Literal["downloading", "reading", "preparing"]
    file: NotRequired[str]
    bytes: NotRequired[int]
    total: NotRequired[int]

Path = Union[str, os.PathLike[str]]
Source = Union[Path, Mapping[str, bytes], Mapping[str, Path]]
Texts = Union[Iterable[str], ArrowArray, ArrowStream]
Pairs = Iterable[Union[tuple[str, str], list[str]]]
ChunkBy = Literal["tokens", "sentences", "markdown"]
Metric = Literal["cosine", "dot", "euclidean", "manhattan"]
CompactForm = Literal["int8", "binary"]
Dtype = Literal["auto", "f32", "f16", "bf16", "int8", "int8-fast"]
Device = Literal["auto", "cpu", "gpu"]
Vectors = NDArray[np.float32]

class Model:
    @property
    def max_length(self) -> int: ...
    @property
    def model_name(self) -> str: ...
    @property
    def provider(self) -> dict[str, str]: ...
    @property
    def fingerprint(self) -> dict[str, Any]: ...
    def count_tokens(self, text: str) -> int: ...
    def effective_config(self) -> list[dict[str, Any]]: ...
    def stats(self) -> dict[str, Any]: ...
    def capabilities(self) -> dict[str, Any]: ...
    def description(self) -> dict[str, Any]: ...
    def profile(self, *, capacity: int | None = None, operators: bool = False) -> ProfileSession: ...
    def forget_vectors(self) -> None: ...

class Embedder(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        dimension: int | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    @property
    def dimension(self) -> int: ...
    @property
    def metric(self) -> Metric: ...
    def embed(
        self,
        texts: Texts,
        *,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Vectors: ...
    def embed_one(
        self,
        text: str,
        *,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Vectors: ...
    def embed_queries(self, texts: Texts, *, dimension: int | None = None, normalize: bool | None = None) -> Vectors: ...
    def embed_query(self, text: str, *, dimension: int | None = None, normalize: bool | None = None) -> Vectors: ...
    def embed_passages(self, texts: Texts, *, dimension: int | None = None, normalize: bool | None = None) -> Vectors: ...
    def embed_passage(self, text: str, *, dimension: int | None = None, normalize: bool | None = None) -> Vectors: ...
    def embeddings(
        self,
        texts: Texts,
        *,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Embeddings: ...
    def chunk(
        self,
        text: str,
        *,
        by: ChunkBy = "sentences",
        max_tokens: int | None = None,
        overlap: int = 0,
        prompt: str | None = None,
        prefix: str | None = None,
    ) -> list[Chunk]: ...
    def embed_chunks(
        self,
        texts: Texts,
        *,
        by: ChunkBy = "sentences",
        max_tokens: int | None = None,
        overlap: int = 0,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> EmbeddedChunks: ...
    def aembed_chunks(
        self,
        texts: Texts,
        *,
        by: ChunkBy = "sentences",
        max_tokens: int | None = None,
        overlap: int = 0,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Coroutine[Any, Any, EmbeddedChunks]: ...
    def embed_long(
        self,
        texts: Texts,
        *,
        by: ChunkBy = "sentences",
        max_tokens: int | None = None,
        overlap: int = 0,
        combine: Literal["mean", "max"] = "mean",
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Embeddings: ...
    def aembed_long(
        self,
        texts: Texts,
        *,
        by: ChunkBy = "sentences",
        max_tokens: int | None = None,
        overlap: int = 0,
        combine: Literal["mean", "max"] = "mean",
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Coroutine[Any, Any, Embeddings]: ...
    def rank(self, query: str, texts: Texts, k: int | None = None) -> list[Hit]: ...
    def similarity(self, a: ArrayLike | Embeddings, b: ArrayLike | Embeddings) -> Vectors: ...
    def aembed(
        self,
        texts: Texts,
        *,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> Coroutine[Any, Any, Vectors]: ...
    def aembed_query(
        self, text: str, *, dimension: int | None = None, normalize: bool | None = None
    ) -> Coroutine[Any, Any, Vectors]: ...
    def aembed_passages(
        self, texts: Texts, *, dimension: int | None = None, normalize: bool | None = None
    ) -> Coroutine[Any, Any, Vectors]: ...
    def embed_stream(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        prefix: str | None = None,
        dimension: int | None = None,
        normalize: bool | None = None,
    ) -> EmbeddedTexts: ...

class EmbeddedTexts(Iterator[Vectors]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Vectors: ...

class Classifier(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    @property
    def labels(self) -> list[str]: ...
    def classify(
        self, texts: Texts, *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> list[list[Label]]: ...
    def aclassify(
        self, texts: Texts, *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> Coroutine[Any, Any, list[list[Label]]]: ...
    def scores(
        self, texts: Texts, *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> Vectors: ...
    def classify_pairs(
        self, pairs: Pairs, *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> list[list[Label]]: ...
    def aclassify_pairs(
        self, pairs: Pairs, *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> Coroutine[Any, Any, list[list[Label]]]: ...
    def pair_scores(
        self, pairs: Pairs, *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> Vectors: ...

class Reranker(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    def rank(
        self,
        query: str,
        documents: Texts,
        top_n: int | None = None,
        *,
        scores: Literal["sigmoid", "logits"] | None = None,
        prompt: str | None = None,
        instruction: str | None = None,
    ) -> list[Ranked]: ...
    def arank(
        self,
        query: str,
        documents: Texts,
        top_n: int | None = None,
        *,
        scores: Literal["sigmoid", "logits"] | None = None,
        prompt: str | None = None,
        instruction: str | None = None,
    ) -> Coroutine[Any, Any, list[Ranked]]: ...
    def score(
        self,
        pairs: Pairs,
        *,
        scores: Literal["sigmoid", "logits"] | None = None,
        prompt: str | None = None,
        instruction: str | None = None,
    ) -> Vectors: ...
    def ascore(
        self,
        pairs: Pairs,
        *,
        scores: Literal["sigmoid", "logits"] | None = None,
        prompt: str | None = None,
        instruction: str | None = None,
    ) -> Coroutine[Any, Any, Vectors]: ...

class SparseEmbedder(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    @property
    def vocabulary_size(self) -> int: ...
    def embed(
        self, texts: Texts, *, prompt: str | None = None, prefix: str | None = None, top_k: int | None = None
    ) -> list[SparseVector]: ...
    def embed_queries(self, texts: Texts, *, top_k: int | None = None) -> list[SparseVector]: ...
    def embed_passages(self, texts: Texts, *, top_k: int | None = None) -> list[SparseVector]: ...
    def embeddings(
        self, texts: Texts, *, prompt: str | None = None, prefix: str | None = None, top_k: int | None = None
    ) -> SparseEmbeddings: ...
    def aembed(
        self, texts: Texts, *, prompt: str | None = None, prefix: str | None = None, top_k: int | None = None
    ) -> Coroutine[Any, Any, list[SparseVector]]: ...
    def words(self, vector: SparseVector, most: int | None = None) -> list[Word]: ...

class MultiVectorEmbedder(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        max_length: int | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    @property
    def dimension(self) -> int: ...
    def embed_queries(self, texts: Texts) -> MultiVectorEmbeddings: ...
    def embed_passages(self, texts: Texts) -> MultiVectorEmbeddings: ...
    def aembed(self, texts: Texts, *, prompt: str = "passage") -> Coroutine[Any, Any, MultiVectorEmbeddings]: ...

class ImageEmbedder(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        dimension: int | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    @property
    def dimension(self) -> int: ...
    @property
    def metric(self) -> Metric: ...
    def embed(
        self, pictures: Iterable[Path | bytes], *, dimension: int | None = None, normalize: bool | None = None
    ) -> Vectors: ...
    def aembed(
        self, pictures: Iterable[Path | bytes], *, dimension: int | None = None, normalize: bool | None = None
    ) -> Coroutine[Any, Any, Vectors]: ...
    def embeddings(
        self, pictures: Iterable[Path | bytes], *, dimension: int | None = None, normalize: bool | None = None
    ) -> Embeddings: ...

class ImageClassifier(Model):
    def __new__(
        cls,
        source: Source,
        *,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    @property
    def labels(self) -> list[str]: ...
    def classify(
        self, pictures: Iterable[Path | bytes], *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> list[list[Label]]: ...
    def aclassify(
        self, pictures: Iterable[Path | bytes], *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> Coroutine[Any, Any, list[list[Label]]]: ...
    def scores(
        self, pictures: Iterable[Path | bytes], *, scores: Literal["softmax", "sigmoid", "logits"] | None = None
    ) -> Vectors: ...

class TextReader:
    def __new__(
        cls,
        source: Source,
        *,
        detector: str | None = None,
        orientation: str | None = ...,
        recognizer: str | None = None,
        min_score: float | None = None,
        device: Device | None = None,
        config: Mapping[str, Any] | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        dtype: Dtype | None = None,
        revision: str | None = None,
        cache_dir: Path | None = None,
        offline: bool | None = None,
    ) -> Self: ...
    def read(self, pictures: Iterable[Path | bytes]) -> list[PictureText]: ...
    def aread(self, pictures: Iterable[Path | bytes]) -> Coroutine[Any, Any, list[PictureText]]: ...
    @property
    def model_name(self) -> str: ...
    @property
    def provider(self) -> dict[str, str]: ...
    def effective_config(self) -> list[dict[str, Any]]: ...

def hocr(pages: Iterable[tuple[str, PictureText]]) -> str: ...

class OptimizationReport:
    @property
    def written(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_markdown(self) -> str: ...
    def to_html(self) -> str: ...

def optimize(
    source: Source,
    out: Path,
    *,
    level: Literal["none", "basic", "extended", "all"] | None = None,
    passes: Sequence[str] = ...,
    texts: Texts | None = None,
    calibrate: Texts | None = None,
    images: Iterable[Path | bytes] | None = None,
    calibrate_images: Iterable[Path | bytes] | None = None,
    keep_tokens_of: Texts | None = None,
    keep_languages: Sequence[str] = ...,
    static_dimension: int | None = None,
    prune: float | None = None,
    int8: Literal["static", "dynamic"] | None = None,
    smooth: float | None = None,
    int4: bool = False,
    bits: float | None = None,
    in_f32: Sequence[str] = ...,
    seven_bits: bool = False,
    each_node: bool = False,
    budget: Sequence[str] = ...,
    rounds: int | None = None,
    seconds: float | None = None,
    config: Mapping[str, Any] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    dtype: Dtype | None = None,
    max_length: int | None = None,
    revision: str | None = None,
    cache_dir: Path | None = None,
    offline: bool | None = None,
) -> OptimizationReport: ...

class Embeddings:
    @staticmethod
    def load(path: Path) -> Embeddings: ...
    @staticmethod
    def from_bytes(data: bytes) -> Embeddings: ...
    def save(self, path: Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __len__(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def metric(self) -> Metric: ...
    @property
    def prompt(self) -> str | None: ...
    @property
    def model_name(self) -> str: ...
    @property
    def fingerprint(self) -> dict[str, Any]: ...
    def check_compatible(self, fingerprint: Mapping[str, Any] | str | bytes) -> tuple[str, str] | None: ...
    @property
    def token_counts(self) -> list[int]: ...
    @property
    def truncated(self) -> list[bool]: ...
    @property
    def labels(self) -> list[str] | None: ...
    def with_labels(self, labels: list[str]) -> Embeddings: ...
    def numpy(self) -> Vectors: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def search(self, queries: Embeddings, k: int = 10) -> list[list[Hit]]: ...
    def rescored(self, query: Embeddings, found: list[Hit], k: int = 10) -> list[Hit]: ...
    def compact(self, form: CompactForm) -> CompactEmbeddings: ...
    def similarity(self, other: Embeddings) -> Vectors: ...

class CompactEmbeddings:
    @staticmethod
    def load(path: Path) -> CompactEmbeddings: ...
    @staticmethod
    def from_bytes(data: bytes) -> CompactEmbeddings: ...
    def save(self, path: Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __len__(self) -> int: ...
    @property
    def form(self) -> CompactForm: ...
    @property
    def dimension(self) -> int: ...
    @property
    def metric(self) -> Metric: ...
    @property
    def labels(self) -> list[str] | None: ...
    @property
    def fingerprint(self) -> dict[str, Any]: ...
    def check_compatible(self, fingerprint: Mapping[str, Any] | str | bytes) -> tuple[str, str] | None: ...
    def numpy(self) -> NDArray[np.int8] | NDArray[np.uint8]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def scales(self) -> Vectors: ...
    def search(self, queries: Embeddings, k: int = 10) -> list[list[Hit]]: ...
    def rescored(self, query: Embeddings, found: list[Hit], k: int = 10) -> list[Hit]: ...

class MultiVectorEmbeddings:
    @staticmethod
    def load(path: Path) -> MultiVectorEmbeddings: ...
    @staticmethod
    def from_bytes(data: bytes) -> MultiVectorEmbeddings: ...
    def save(self, path: Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> NDArray[np.float32]: ...
    @property
    def form(self) -> CompactForm | None: ...
    @property
    def dimension(self) -> int: ...
    @property
    def fingerprint(self) -> dict[str, Any]: ...
    def check_compatible(self, fingerprint: Mapping[str, Any] | str | bytes) -> tuple[str, str] | None: ...
    def compact(self, form: CompactForm) -> MultiVectorEmbeddings: ...
    def search(self, queries: MultiVectorEmbeddings, k: int = 10) -> list[list[Hit]]: ...

class SparseEmbeddings:
    @staticmethod
    def load(path: Path) -> SparseEmbeddings: ...
    @staticmethod
    def from_bytes(data: bytes) -> SparseEmbeddings: ...
    def save(self, path: Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> SparseVector: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def fingerprint(self) -> dict[str, Any]: ...
    def check_compatible(self, fingerprint: Mapping[str, Any] | str | bytes) -> tuple[str, str] | None: ...
    def top_k(self, most: int) -> SparseEmbeddings: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def search(self, queries: SparseEmbeddings, k: int = 10) -> list[list[Hit]]: ...

def fuse(rankings: list[list[Hit]], k: int = 10) -> list[Hit]: ...

class ProfileSession:
    def finish(self) -> str: ...
    def save(self, path: Path) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, error: object, trace: object) -> None: ...

class Call:
    def start(self, done: Callable[[Any, BaseException | None], object]) -> None: ...
    def cancel(self) -> None: ...

def restore(class_: type[Any], source: Source, named: dict[str, Any]) -> Any: ...
