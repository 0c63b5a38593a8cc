"""Vectors beside a column of texts, as arrays of pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._errors import ConfigError, TextError

if TYPE_CHECKING:
    import pyarrow as pa

    from ._spec import EmbedderSpec

LONGEST = 2**31 - 1
"""Numbers that a list of Arrow's can have in all, because its offsets are of 32 bits."""


def fixed_lists(spec: EmbedderSpec, texts: Any, *, cpus: int | None = None) -> pa.FixedSizeListArray:
    """The vectors as lists of a fixed size, over the memory that they were computed into. A text that is null has a null."""
    import numpy as np
    import pyarrow as pa

    there, valid = _there(texts)
    found = spec.embeddings(there, cpus=cpus)
    vectors = pa.array(found)
    if valid is None:
        return vectors
    # There have to be numbers where there is no vector.
    rows = np.zeros((len(texts), found.dimension), np.float32)
    rows[valid] = found.numpy()
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), type=vectors.type, mask=pa.array(~valid))


def lists(spec: EmbedderSpec, texts: Any, *, cpus: int | None = None) -> pa.ListArray:
    """The same as lists of any size, for engines that know no others. Nothing is copied, with nulls neither."""
    import numpy as np
    import pyarrow as pa

    there, valid = _there(texts)
    found = spec.embeddings(there, cpus=cpus)
    if len(found) * found.dimension > LONGEST:
        raise ConfigError(
            f"{len(found)} vectors of {found.dimension} components are too many for one batch of Arrow; give smaller batches", "Config"
        )
    lengths = np.ones(len(texts), np.int32) if valid is None else valid.astype(np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths * found.dimension, dtype=np.int32)])
    kind = pa.list_(pa.field("element", pa.float32(), nullable=False))
    mask = None if valid is None else pa.array(~valid)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(found).values, type=kind, mask=mask)


def must_have(names: Sequence[str], column: str) -> None:
    """An error unless a table has a column."""
    if column not in names:
        raise ConfigError(f"there is no column {column!r}; there are {', '.join(names)}", "Config")


def must_not_have(names: Sequence[str], into: str) -> None:
    """An error if a table has the column already that the vectors go into."""
    if into in names:
        raise ConfigError(f"there is a column {into!r} already; `into` names another for the vectors", "Config")


def _there(texts: Any) -> tuple[Any, Any]:
    """The texts that are not null, and for each text whether it is one of them; `None` where all are."""
    import pyarrow as pa

    if pa.types.is_dictionary(texts.type):
        # A word of the dictionary may be null, too.
        texts = texts.cast(texts.type.value_type)
    kind = texts.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)):
        raise TextError(f"the column is of {kind}, and one of strings is wanted", "InvalidText")
    if texts.null_count == 0:
        return texts, None
    valid = texts.is_valid()
    return texts.filter(valid), valid.to_numpy(zero_copy_only=False) if isinstance(valid, pa.Array) else valid.to_numpy()
