"""What a model is loaded from, and how."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isovec
from conftest import BERT, PORTABLE
from isovec import ConfigError, Embedder, Embeddings, IncompatibleIndexError, IsovecError

TEXTS = ["the dog has a tail", "money in the bank"]
FILES = [path for path in BERT.rglob("*") if path.is_file() and path.name != "reference.json"]


def test_every_source_is_the_same_model(embedder: Embedder) -> None:
    expected = embedder.embed(TEXTS).tobytes()
    named = {path.relative_to(BERT).as_posix(): path for path in FILES}
    contents = {name: path.read_bytes() for name, path in named.items()}
    for source in (BERT, str(BERT), named, contents):
        assert Embedder(source, config=PORTABLE).embed(TEXTS).tobytes() == expected
    with pytest.raises(TypeError, match="bytes and paths"):
        Embedder({"a": b"", "b": "path"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="of type int"):
        Embedder(3)  # type: ignore[arg-type]


def test_words_are_short_for_knobs() -> None:
    words = Embedder(BERT, dtype="f16", dimension=8, max_length=16, config=PORTABLE)
    knobs = Embedder(BERT, config={**PORTABLE, "model": {"dtype": "f16"}, "text": {"dimension": 8, "max_length": 16}})
    assert words.fingerprint == knobs.fingerprint
    assert (words.dimension, words.max_length) == (8, 16)
    # A word goes over the knob.
    assert Embedder(BERT, dimension=4, config={**PORTABLE, "text": {"dimension": 8}}).dimension == 4


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"dtype": "f64"}, ConfigError, "f64"),
        ({"dimension": -1}, ConfigError, "-1"),
        ({"dimension": 0}, ConfigError, "text.dimension is 0"),
        ({"device": "cuda"}, ConfigError, "execution_providers"),
        ({"config": {"batching": {"max_bach_size": 1}}}, ConfigError, "max_bach_size"),
        ({"config": {"text": 3}, "dimension": 3}, ConfigError, "`dimension`"),
        ({"config": [1]}, ConfigError, "dict"),
        ({"config": {"text": {"max_length": float("nan")}}}, ConfigError, "not usable"),
        ({"config": {"text": object()}}, TypeError, "object"),
        ({"max_lenght": 3}, TypeError, "max_lenght"),
        ({"progress": "yes"}, TypeError, "bool"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        Embedder(BERT, **options)


def test_a_model_that_is_not_there_says_where(tmp_path: Path) -> None:
    with pytest.raises(isovec.FileError, match="nowhere"):
        Embedder(tmp_path / "nowhere")
    with pytest.raises(IsovecError) as raised:
        Embedder(tmp_path)
    assert isinstance(raised.value, (isovec.ModelNotFoundError, isovec.UnsupportedModelError)), raised.value.kind
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(IsovecError):
        Embedder(tmp_path)


def test_progress_is_heard() -> None:
    heard: list[Any] = []
    Embedder(BERT, progress=heard.append, config=PORTABLE)
    assert [said["stage"] for said in heard] == ["reading", "preparing"]
    for shown in (True, False):
        Embedder(BERT, progress=shown, config=PORTABLE)


def test_a_bar_is_shown_while_files_come(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    from isovec._progress import bar

    show = bar()
    for at in (10, 2048, 4096):
        show({"stage": "downloading", "file": "model.safetensors", "bytes": at, "total": 4096})
    show({"stage": "reading"})
    show({"stage": "preparing"})
    said = capsys.readouterr().err
    assert "model.safetensors" in said and "100%" in said


def test_a_listener_that_fails_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(said: object) -> None:
        raise LookupError("of mine")

    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    Embedder(BERT, progress=fail, config=PORTABLE)
    assert [(error.exc_type, error.object) for error in raised] == [(LookupError, fail)] * 2


def test_a_model_is_pickled_by_its_source_and_knobs(embedder: Embedder) -> None:
    model = Embedder(
        BERT,
        device="cpu",
        dimension=8,
        config={**PORTABLE, "text": {"prompts": {"mine": "of the "}}, "hub": {"token": "secret"}},
    )
    written = pickle.dumps(model)
    assert b"secret" not in written and len(written) < 1000
    for same in (pickle.loads(written), copy.copy(model), copy.deepcopy(model)):
        assert type(same) is Embedder and same.fingerprint == model.fingerprint
        assert same.embed(TEXTS, prompt="mine").tobytes() == model.embed(TEXTS, prompt="mine").tobytes()


def test_a_class_of_ones_own_is_pickled_as_itself() -> None:
    same = pickle.loads(pickle.dumps(Mine(BERT, config=PORTABLE)))
    assert type(same) is Mine and same.twice("the dog").shape == (2, 32)


class Mine(Embedder):
    def twice(self, text: str) -> Any:
        return self.embed([text, text])


def test_a_set_is_saved_and_read(embedder: Embedder, tmp_path: Path) -> None:
    found = embedder.embeddings([*TEXTS, "the " * 100], prompt="passage")
    assert found.truncated == [False, False, True] and found.token_counts[2] == embedder.max_length
    labelled = found.with_labels(["dog", "bank", "the"])
    labelled.save(tmp_path / "set.safetensors")
    for same in (Embeddings.load(tmp_path / "set.safetensors"), pickle.loads(pickle.dumps(labelled))):
        assert same.numpy().tobytes() == found.numpy().tobytes()
        assert same.labels == ["dog", "bank", "the"]
        assert (same.fingerprint, same.metric, same.prompt) == (found.fingerprint, found.metric, found.prompt)
    with pytest.raises(IsovecError, match="1 labels"):
        found.with_labels(["one"])
    with pytest.raises(OSError):
        Embeddings.load(tmp_path / "missing")
    other = Embedder(BERT, dimension=8, config=PORTABLE).embeddings(TEXTS)
    with pytest.raises(IncompatibleIndexError):
        found.search(other)


def test_a_model_says_what_it_is(embedder: Embedder) -> None:
    # As JSON writes it, Rust writes a path in quotes.
    name = json.dumps(str(BERT))
    assert repr(embedder) == f'<Embedder {name}, portable isovec {isovec.__version__} on CPU, at most 64 tokens>'
    assert repr(embedder.embeddings(TEXTS)) == f"<Embeddings 2 x 32 of {name}>"
    assert embedder.provider["engine"] == "portable"
    assert embedder.count_tokens("the dog") == 4
    knobs = {knob["name"]: knob for knob in embedder.effective_config()}
    assert knobs["engine"]["used"] == "portable"
    assert embedder.stats()["calls"]["texts"] > 0
    assert embedder.capabilities() and embedder.description()


def test_a_profile_has_what_was_done(embedder: Embedder, tmp_path: Path) -> None:
    with embedder.profile(operators=True) as profile:
        with pytest.raises(IsovecError) as raised:
            embedder.profile()
        assert raised.value.kind == "AlreadyProfiled"
        embedder.embed(TEXTS)
    embedder.embed(TEXTS)
    profile.save(tmp_path / "trace.json")
    trace = (tmp_path / "trace.json").read_text()
    assert trace == profile.finish()
    names = [event["name"] for event in json.loads(trace)["traceEvents"]]
    assert sum(name.startswith("request") for name in names) == 1, set(names)
    with embedder.profile(capacity=1) as small:
        embedder.embed(TEXTS)
    assert len(small.finish()) < len(trace)


def test_warnings_go_to_logging(python: Callable[[str], subprocess.Popen[str]]) -> None:
    script = """
import logging, os
os.environ["ORT_DYLIB_PATH"] = os.environ["MODEL"]
import isovec
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
print(isovec.Embedder(os.environ["MODEL"]).provider["engine"])
"""
    said, _ = python(script).communicate(timeout=60)
    assert said.startswith("isovec WARNING ONNX Runtime cannot be used; the portable engine takes its place; reason: "), said
    assert said.endswith("\nportable\n"), said


def test_vectors_that_are_kept_are_forgotten(tmp_path: Path) -> None:
    model = Embedder(BERT, config={**PORTABLE, "embedding_cache": {"memory": 1 << 20}})

    def hits() -> Any:
        return model.stats()["embedding_cache"]["hits"]

    model.embed(TEXTS)
    model.embed(TEXTS)
    assert hits() == 2
    model.forget_vectors()
    model.embed(TEXTS)
    assert hits() == 2


def test_onnxruntime_is_found_beside(python: Callable[[str], subprocess.Popen[str]], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    script = """
import os, sys
import isovec
print(isovec.Embedder(os.environ["MODEL"]).provider["engine"])
print("onnxruntime" in sys.modules, "numpy" in sys.modules)
"""
    environment = os.environ.copy()
    try:
        os.environ.pop("ORT_DYLIB_PATH", None)
        os.environ["ISOVEC_CACHE"] = str(tmp_path)
        said, _ = python(script).communicate(timeout=60)
    finally:
        os.environ.update(environment)
    assert said == "onnxruntime\nFalse False\n"
