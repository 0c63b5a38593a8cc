"""The rows of results. `index` takes the place of the method that tuples have."""

from typing import NamedTuple


class Hit(NamedTuple):
    """One result of a search."""

    index: int  # type: ignore[assignment]
    """The vector's place in the set that was searched."""
    score: float
    """Its score; larger is more alike."""


class Label(NamedTuple):
    """A label and its score for one text."""

    label: str
    """Its name."""
    score: float
    """Its score: a probability, unless the model's numbers are wanted as they are."""
    index: int  # type: ignore[assignment]
    """Its place among the model's labels."""


class Ranked(NamedTuple):
    """A document of a ranking."""

    index: int  # type: ignore[assignment]
    """Its place among the documents that were handed in."""
    score: float
    """How relevant it is: more is more relevant."""
