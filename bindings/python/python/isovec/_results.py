"""The rows of results. `index` takes the place of the method that tuples have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._isovec import Embeddings


class Chunk(NamedTuple):
    """A part of a text that the model sees whole: `text[start:end]`."""

    start: int
    """Its first character."""
    end: int
    """The character after its last."""
    tokens: int
    """Tokens that the model sees of it, special ones and the prompt's included."""


class ChunkPlace(NamedTuple):
    """Where a chunk lies: it is `texts[text][start:end]`."""

    text: int
    """The text's place in the list."""
    start: int
    """Its first character."""
    end: int
    """The character after its last."""


class EmbeddedChunks(NamedTuple):
    """The vectors of the chunks of texts."""

    embeddings: Embeddings
    """One vector a chunk: those of the first text, then those of the second, each in order."""
    places: list[ChunkPlace]
    """Where the chunk of each vector lies."""


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


class TextLine(NamedTuple):
    """A line of text, and where it stands."""

    text: str
    """What it says."""
    score: float
    """The mean probability of its characters, from 0 to 1."""
    corners: list[tuple[float, float]]
    """The corners of the box around it, in pixels of the picture: upper left, upper right, lower right, lower left."""


class PictureText(NamedTuple):
    """The text of one picture."""

    width: int
    """The picture's width in pixels, turned as its EXIF asks for."""
    height: int
    """Its height in pixels."""
    lines: list[TextLine]
    """Its lines of text, in the order in which they are read; none where there is no text."""

    def plain(self) -> str:
        """The lines alone, each ended by a line break."""
        return "".join(f"{line.text}\n" for line in self.lines)


class Ranked(NamedTuple):
    """A document of a ranking."""

    index: int  # type: ignore[assignment]
    """Its place among the documents that were handed in."""
    score: float
    """How relevant it is: more is more relevant."""


class SparseVector(NamedTuple):
    """The weights of a text's words; all other words have the weight 0."""

    indices: NDArray[np.uint32]
    """Token ids, each larger than the one before it."""
    values: NDArray[np.float32]
    """Their weights, all above 0."""


class Word(NamedTuple):
    """A word and its weight."""

    token: str
    """The token, as the tokenizer's file writes it."""
    weight: float
    """Its weight."""
    index: int  # type: ignore[assignment]
    """The token's id."""
