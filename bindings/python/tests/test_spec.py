"""A model as what travels to other processes."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isovec
from conftest import BERT, PORTABLE, change_weights
from isovec import ConfigError, Embedder, EmbedderSpec, IncompatibleIndexError, IsovecError

TEXTS = ["the dog has a tail", "money in the bank"]


def elsewhere(spec: EmbedderSpec) -> EmbedderSpec:
    """As it comes out of a pickle: without a model."""
    same = pickle.loads(pickle.dumps(spec))
    assert isinstance(same, EmbedderSpec)
    return same


def test_a_spec_is_a_model_by_its_name(embedder: Embedder) -> None:
    expected = embedder.embed_passages(TEXTS).tobytes()
    for spec in (
        EmbedderSpec(embedder),
        EmbedderSpec(BERT, config=PORTABLE),
        EmbedderSpec(str(BERT), config=PORTABLE, fingerprint=embedder.fingerprint),
        EmbedderSpec({path.relative_to(BERT).as_posix(): path for path in BERT.rglob("*") if path.is_file()}, config=PORTABLE),
    ):
        for same in (spec, elsewhere(spec)):
            assert same.embeddings(TEXTS).numpy().tobytes() == expected
            assert (same.dimension, same.fingerprint) == (32, embedder.fingerprint)
        assert str(BERT) in repr(spec) and "32 components" in repr(spec)
        assert len(pickle.dumps(spec)) < 10_000
    assert EmbedderSpec.of(spec) is spec


def test_prompts_and_knobs_travel() -> None:
    config = {**PORTABLE, "text": {"prompts": {"mine": "of the "}}, "hub": {"token": "secret"}}
    model = Embedder(BERT, config=config, dimension=8)
    for fingerprint in (None, model.fingerprint):
        spec = EmbedderSpec(BERT, config=config, dimension=8, prompt="mine", progress=print, fingerprint=fingerprint)
        assert b"secret" not in pickle.dumps(spec)
        assert elsewhere(spec).embeddings(TEXTS).numpy().tobytes() == model.embed(TEXTS, prompt="mine").tobytes()
    assert EmbedderSpec(model, prefix="a ").embeddings(TEXTS).numpy().tobytes() == model.embed(TEXTS, prefix="a ").tobytes()
    assert EmbedderSpec(model, prompt="query").embeddings(TEXTS).numpy().tobytes() == model.embed_queries(TEXTS).tobytes()


def test_a_process_loads_a_model_once() -> None:
    spec = EmbedderSpec(BERT, config={**PORTABLE, "batching": {"max_batch_size": 7}})
    others = [elsewhere(spec) for _ in range(3)]
    assert len({id(other.embedder(cpus=1)) for other in others}) == 1
    assert elsewhere(spec).embedder() is spec.embedder()
    assert EmbedderSpec(BERT, config={**PORTABLE, "batching": {"max_batch_size": 7}}).embedder() is spec.embedder()
    assert EmbedderSpec(BERT, config={**PORTABLE, "batching": {"max_batch_size": 8}}).embedder() is not spec.embedder()


def test_a_worker_computes_with_its_share_of_the_processor() -> None:
    def session(spec: EmbedderSpec, cpus: int | None) -> tuple[Any, Any]:
        knobs = {knob["name"]: knob["used"] for knob in elsewhere(spec).embedder(cpus=cpus).effective_config()}
        return int(knobs["session.intra_op_threads"]), int(knobs["session.pool_size"])

    free = EmbedderSpec(BERT, config=PORTABLE)
    assert session(free, 1) == (1, 1)
    assert session(free, 3) == (3, 1)
    assert session(free, 8) == (4, 2)
    set_already = EmbedderSpec(BERT, config={**PORTABLE, "session": {"intra_op_threads": 2}})
    assert session(set_already, 8)[0] == 2


def test_another_model_at_the_same_place_is_refused(folder: Path) -> None:
    spec = EmbedderSpec(folder, config=PORTABLE)
    change_weights(folder)
    script = """
import pickle, sys
spec = pickle.load(sys.stdin.buffer)
try:
    spec.embeddings(["a"])
except Exception as error:
    print(type(error).__name__, error)
"""

    def say() -> str:
        run = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(spec), capture_output=True)
        return run.stdout.decode() + run.stderr.decode()

    said = say()
    assert said.startswith("IncompatibleIndexError process ") and "weights: " in said and str(folder) in said, said
    shutil.rmtree(folder)
    said = say()
    assert said.startswith("FileError process ") and f"could not load the model {str(folder)!r}" in said, said


def test_another_version_or_fingerprint_is_refused(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EmbedderSpec(embedder)
    with monkeypatch.context() as patched:
        patched.setattr(isovec._isovec, "__version__", "99.0.0")
        with pytest.raises(IncompatibleIndexError, match=f"has isovec 99.0.0, .* with {isovec.__version__}"):
            elsewhere(spec).embeddings(TEXTS)
    other = Embedder(BERT, dimension=8, config=PORTABLE).fingerprint
    with pytest.raises(IncompatibleIndexError, match="dimension: 32 here, 8 there"):
        EmbedderSpec(embedder, fingerprint=other)
    with pytest.raises(IncompatibleIndexError, match="dimension: 32 here, 8 there"):
        EmbedderSpec(BERT, config=PORTABLE, fingerprint=other).embeddings(TEXTS)
    half = Embedder(BERT, dtype="f16", config=PORTABLE).fingerprint
    with pytest.raises(IncompatibleIndexError, match="precision: f32 here, f16 there"):
        EmbedderSpec(BERT, config=PORTABLE, fingerprint=half).embeddings(TEXTS)


def test_names_of_paths_travel_to_other_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(BERT.parent)
    specs = [EmbedderSpec(name, config=PORTABLE) for name in ("./tiny-bert", "../data/tiny-bert", Path("tiny-bert"))]
    specs.append(EmbedderSpec(Embedder(Path("tiny-bert"), config=PORTABLE)))
    monkeypatch.chdir(tmp_path)
    for spec in specs:
        # The knobs are others, so that it is loaded again.
        assert elsewhere(spec).embedder(cpus=1).dimension == 32
    spec = EmbedderSpec("one/name", fingerprint=specs[0].fingerprint)
    assert "'one/name'" in repr(spec)


def test_bytes_stay_in_their_process() -> None:
    spec = EmbedderSpec({path.relative_to(BERT).as_posix(): path.read_bytes() for path in BERT.rglob("*") if path.is_file()})
    assert len(spec.embeddings(TEXTS)) == 2
    with pytest.raises(TypeError, match="given as bytes"):
        pickle.dumps(spec)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda model: EmbedderSpec(model, prompt="query", prefix="a"), "give one of them"),
        (lambda model: EmbedderSpec(model, dtype="f16"), "`dtype`: the model is loaded already"),
        (lambda model: EmbedderSpec(model, prompt="nowhere"), "nowhere"),
        (lambda model: EmbedderSpec(model, fingerprint={"identity": {}}), "`fingerprint` is none"),
        (lambda model: EmbedderSpec(model, fingerprint={"identity": "abc"}), "`fingerprint` is none"),
        (lambda model: EmbedderSpec.of(EmbedderSpec(model), prompt="query"), "`prompt`: the spec is made already"),
        (lambda model: EmbedderSpec(BERT, config={"batching": {"max_bach_size": 1}}), "max_bach_size"),
    ],
)
def test_what_cannot_be_is_an_error(make: Callable[[Embedder], Any], said: str, embedder: Embedder) -> None:
    with pytest.raises(ConfigError, match=said):
        make(embedder)


@pytest.mark.parametrize("module", ["daft", "polars", "ray", "spark"])
def test_a_missing_package_is_named(module: str) -> None:
    package = {"spark": "pyspark"}.get(module, module)
    script = f"import sys; sys.modules[{package!r}] = None; import isovec.{module}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"ModuleNotFoundError: isovec.{module} needs {package}, which {sys.executable} could not import (" in run.stderr
    assert "): pip install " in run.stderr and package in run.stderr.split("pip install ")[-1]


def test_an_error_of_a_worker_is_pickled() -> None:
    with pytest.raises(IsovecError) as raised:
        EmbedderSpec("/nowhere", fingerprint=EmbedderSpec(BERT).fingerprint).embeddings(TEXTS)
    same = pickle.loads(pickle.dumps(raised.value))
    assert (type(same), str(same), same.kind) == (type(raised.value), str(raised.value), raised.value.kind)
