"""isovec in the actors of Ray Data (`pip install "ray[data]"`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _arrow
from ._optional import missing
from ._spec import EmbedderSpec

try:
    import ray
    import ray.data
except ImportError as error:
    raise missing(__name__, '"ray[data]"', error) from error

if TYPE_CHECKING:
    import pyarrow as pa

    from ._spec import ModelLike


class EmbedTexts:
    """What Ray Data makes an actor of: it adds a column of vectors to tables of Arrow.

    An actor computes with as many threads as Ray gave it CPUs, unless the model's knobs say how many.

    >>> from isovec import EmbedderSpec
    >>> from isovec.ray import EmbedTexts
    >>> spec = EmbedderSpec("sentence-transformers/all-MiniLM-L6-v2")
    >>> # dataset.map_batches(EmbedTexts, fn_constructor_args=[spec], batch_format="pyarrow", concurrency=2)
    """

    def __init__(self, spec: EmbedderSpec, *, column: str = "text", into: str = "vector") -> None:
        """Loads the model in the process of the actor."""
        self._spec, self._column, self._into = spec, column, into
        cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 0)
        self._cpus = int(cpus) if cpus >= 1 else 1
        spec.embedder(cpus=self._cpus)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The batch with its vectors, as lists of a fixed size. A text that is null has a null."""
        _arrow.must_have(batch.column_names, self._column)
        _arrow.must_not_have(batch.column_names, self._into)
        vectors = _arrow.fixed_lists(self._spec, batch.column(self._column), cpus=self._cpus)
        return batch.append_column(self._into, vectors)


def embed(
    dataset: ray.data.Dataset,
    model: ModelLike,
    *,
    column: str = "text",
    into: str = "vector",
    prompt: str | None = None,
    prefix: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    concurrency: int | tuple[int, int] = 1,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    batch_size: int = 1024,
    ray_remote_args: Mapping[str, Any] | None = None,
    **options: Any,
) -> ray.data.Dataset:
    """The dataset with the vectors of a column of texts, which `concurrency` actors compute; a pair is the fewest and the most.

    Takes what `EmbedderSpec` takes, or one. `num_cpus`, `num_gpus`, `batch_size` and `ray_remote_args` are those of `map_batches`.
    """
    spec = EmbedderSpec.of(model, prompt=prompt, prefix=prefix, fingerprint=fingerprint, **options)
    least, most = concurrency if isinstance(concurrency, tuple) else (concurrency, concurrency)
    return dataset.map_batches(
        EmbedTexts,
        fn_constructor_args=[spec],
        fn_constructor_kwargs={"column": column, "into": into},
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        **(ray_remote_args or {}),
    )
