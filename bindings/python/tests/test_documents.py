"""The examples of the documents run."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import BERT, DATA, ROOT, java
from test_pictures import png

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "bindings" / "python" / "README.md"]
EXAMPLES = [
    pytest.param(example, id=f"{document.relative_to(ROOT)}, example {at}")
    for document in DOCUMENTS
    for at, example in enumerate(re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL))
]
SMALL = {
    "colbert-ir/colbertv2.0": BERT.with_name("tiny-colbert"),
    "naver/splade-cocondenser-ensembledistil": BERT.with_name("tiny-splade"),
    "./resnet-50": BERT.with_name("tiny-network"),
}
MODEL = os.environ.get("ISOVEC_TEST_MODEL")


@pytest.fixture
def engines() -> Iterator[None]:
    """Ends the clusters that an example has started."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    if "pyspark" in sys.modules:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if "pyspark" in example and (missing := java()):
        pytest.skip(missing)
    if "psycopg" in example:
        request.getfixturevalue("database")
    if "sqlite_vec" in example:
        request.getfixturevalue("sqlite")
    if "qdrant_client" in example:
        pytest.importorskip("qdrant_client", exc_type=ImportError)
    if "TextReader" in example:
        networks = os.environ.get("ISOVEC_TEST_OCR") or pytest.skip("PP-OCR's networks are not there")
        example = example.replace('"./pp-ocrv4"', repr(networks))
        shutil.copy(DATA / "pages" / "006.png", tmp_path / "receipt.jpg")
    if '"photos"' in example:
        (tmp_path / "photos").mkdir()
        for at in range(24):
            (tmp_path / "photos" / f"{at:02}.jpg").write_bytes(png((at * 10, 255 - at * 7, at * 37 % 256)))
    # The real model where set-up brought it.
    model = Path(MODEL) if MODEL and Path(MODEL).is_dir() else BERT
    monkeypatch.chdir(tmp_path)
    for name, folder in {"sentence-transformers/all-MiniLM-L6-v2": model, **SMALL}.items():
        example = example.replace(f'"{name}"', repr(str(folder)))
    exec(example, {"__name__": "example"})


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 5
