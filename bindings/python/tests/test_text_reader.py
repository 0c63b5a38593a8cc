"""The text of pictures, against what rapidocr reads of the same pages."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from conftest import DATA
from isovec import ConfigError, IsovecError, PictureText, TextLine, TextReader, hocr
from test_pictures import png

DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
PAGES = DATA / "pages"
PEER = json.loads((PAGES / "rapidocr.json").read_text(encoding="utf-8"))
#: How far a corner may be, in pixels, and a score.
NEAR, SURE = 1, 1e-3


@pytest.fixture(scope="module")
def networks() -> str:
    """The folder of PP-OCR's networks."""
    folder = os.environ.get("ISOVEC_TEST_OCR")
    if not folder:
        pytest.skip("PP-OCR's networks are not there: `cargo xtask setup ocr`, and their folder in ISOVEC_TEST_OCR")
    return folder


@pytest.fixture(scope="module")
def reader(networks: str) -> TextReader:
    """The networks on ONNX Runtime."""
    return TextReader(networks, config={"engine": "onnxruntime"})


def check(text: PictureText, peer: dict[str, Any]) -> None:
    assert [text.width, text.height] == peer["size"]
    assert [line.text for line in text.lines] == [line["text"] for line in peer["lines"]]
    for line, wanted in zip(text.lines, peer["lines"], strict=True):
        assert line.score == pytest.approx(wanted["score"], abs=SURE)
        for corner, other in zip(line.corners, wanted["corners"], strict=True):
            assert corner == pytest.approx(other, abs=NEAR)


def test_the_portable_engine_reads_the_same(networks: str, reader: TextReader) -> None:
    portable = TextReader(networks, config={"engine": "portable"})
    assert portable.provider["engine"] == "portable"
    page = PAGES / PEER[1]["file"]
    check(portable.read([page])[0], PEER[1])


def test_pages_are_those_of_rapidocr(reader: TextReader) -> None:
    paths = [PAGES / page["file"] for page in PEER]
    texts = reader.read([paths[0], str(paths[1]), *[path.read_bytes() for path in paths[2:]]])
    for text, peer in zip(texts, PEER, strict=True):
        check(text, peer)
    assert asyncio.run(reader.aread(paths[:2])) == texts[:2]
    assert reader.provider["engine"] == "onnxruntime" and "TextReader" in repr(reader)
    used = {knob["name"]: knob["used"] for knob in reader.effective_config()}
    assert used["model.onnx_file"] == DETECTOR
    assert texts[6].plain() == "".join(line.text + "\n" for line in texts[6].lines)


def test_what_cannot_be_read_is_named(reader: TextReader, networks: str, tmp_path: Path) -> None:
    white = png((255, 255, 255))
    assert reader.read([white])[0] == PictureText(40, 40, [])
    assert reader.read([]) == []
    with pytest.raises(IsovecError, match="picture 1") as raised:
        reader.read([white, b"no picture"])
    assert raised.value.kind == "Picture"
    with pytest.raises(TypeError, match="brackets"):
        reader.read(white)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="min_score"):
        TextReader(networks, min_score=2)
    with pytest.raises(IsovecError) as raised:
        TextReader(tmp_path)
    assert raised.value.kind == "MissingFile"
    with pytest.raises(IsovecError, match="detector of text"):
        TextReader(networks, detector="ch_PP-OCRv4_rec_infer.onnx")


def test_without_directions_a_line_on_its_head_is_read_as_it_stands(reader: TextReader, networks: str) -> None:
    page = [PAGES / PEER[5]["file"]]
    upright = TextReader(networks, orientation=None, config={"engine": "onnxruntime"})
    texts = upright.read(page)
    assert texts != reader.read(page)
    # What is pickled is loaded again as it was.
    assert pickle.loads(pickle.dumps(upright)).read(page) == texts
    assert pickle.loads(pickle.dumps(reader)).read(page) == reader.read(page)


def test_pages_become_the_document_that_rust_writes() -> None:
    pages = json.loads((DATA / "hocr" / "pages.json").read_text(encoding="utf-8"))
    from isovec import __version__

    def line(of: dict[str, Any]) -> TextLine:
        return TextLine(of["text"], of["score"], [(x, y) for x, y in of["corners"]])

    texts = [(name, PictureText(page["width"], page["height"], [line(one) for one in page["lines"]])) for name, page in pages]
    wanted = (DATA / "hocr" / "pages.html").read_text(encoding="utf-8")
    assert hocr(texts) == wanted.replace("VERSION", __version__)
