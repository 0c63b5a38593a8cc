"""Pictures become vectors."""

from __future__ import annotations

import asyncio
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from conftest import CLIP, PORTABLE
from isovec import ImageEmbedder, IsovecError


def png(colour: tuple[int, int, int], side: int = 40) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_files_and_bytes_are_the_same_picture(tmp_path: Path) -> None:
    embedder = ImageEmbedder(CLIP, config=PORTABLE)
    red, blue = png((255, 0, 0)), png((0, 0, 255))
    file = tmp_path / "red"
    file.write_bytes(red)
    vectors = embedder.embed([red, blue, file, str(file)])
    assert vectors.shape == (4, embedder.dimension) and not vectors.flags.owndata
    assert vectors[0].tobytes() == vectors[2].tobytes() == vectors[3].tobytes() != vectors[1].tobytes()
    found = embedder.embeddings([red, blue])
    assert found.numpy().tobytes() == vectors[:2].tobytes()
    assert [hit.index for hit in found.search(embedder.embeddings([blue]), 1)[0]] == [1]
    assert asyncio.run(embedder.aembed([red, blue])).tobytes() == vectors[:2].tobytes()
    assert embedder.embed([]).shape == (0, embedder.dimension)
    assert np.isfinite(vectors).all()


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    embedder = ImageEmbedder(CLIP, config=PORTABLE)
    with pytest.raises(IsovecError, match="picture 1") as raised:
        embedder.embed([png((0, 0, 0)), b"no picture"])
    assert raised.value.kind == "Picture"
    with pytest.raises(TypeError, match=r"pictures\[0\] is of type int"):
        embedder.embed([3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="brackets"):
        embedder.embed(png((0, 0, 0)))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="missing"):
        embedder.embed([tmp_path / "missing"])
