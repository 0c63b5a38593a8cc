"""Models made smaller: the folder that is written loads, and the report says what it lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import BERT, PORTABLE
from isovec import ConfigError, Embedder, FileError, IsovecError, optimize

TEXTS = [
    "the cat sat on the mat",
    "a dog runs in the park",
    "rain fell on the town",
    "she reads a book at night",
    "he cooks rice and beans",
    "the train was late again",
    "birds sing in the morning",
    "the sea is calm today",
    "they play chess in winter",
    "a letter came from home",
    "the bridge is very old",
    "we walk along the river",
]


def test_a_model_without_columns_loads_and_the_report_says_what_is_left(tmp_path: Path) -> None:
    small = tmp_path / "small"
    report = optimize(BERT, small, prune=0.05, texts=TEXTS, config=PORTABLE)
    told = report.to_dict()
    assert report.written and told["after"]["weights_bytes"] < 0.95 * told["before"]["weights_bytes"]
    assert sum(part["units"] - part["kept"] for part in told["pruned"]) > 0
    pruning = next(step for step in told["steps"] if step["technique"] == "pruning")
    assert pruning["applied"] and "MB of weights" in pruning["detail"]
    assert 0.5 < told["quality"]["cosine_worst"] < 1
    assert "| pruning | applied" in report.to_markdown() == repr(report)
    assert report.to_html().startswith("<!doctype html>")
    before, after = (Embedder(source, config=PORTABLE) for source in (BERT, small))
    assert before.fingerprint != after.fingerprint
    cosines = (before.embed(TEXTS) * after.embed(TEXTS)).sum(axis=1)
    assert min(cosines) == pytest.approx(told["quality"]["cosine_worst"], abs=1e-5)


def test_a_precision_and_fewer_tokens(tmp_path: Path) -> None:
    small = tmp_path / "small"
    told = optimize(BERT, str(small), keep_tokens_of=TEXTS, dtype="int8", config=PORTABLE).to_dict()
    assert [step["technique"] for step in told["steps"] if step["applied"]] == ["vocabulary", "precision"]
    assert Embedder(small, config=PORTABLE).embed(TEXTS).shape[0] == len(TEXTS)


def test_passes_are_asked_for_by_level_and_by_name(tmp_path: Path) -> None:
    passed = tmp_path / "passed"
    told = optimize(BERT, passed, level="basic", passes=["gelus"], texts=TEXTS, config=PORTABLE).to_dict()
    assert [one["pass"] for one in told["passes"]] == ["constants", "shapes", "identities", "duplicates", "gelus"]
    assert told["quality"]["cosine_worst"] == pytest.approx(1, abs=1e-6)
    with pytest.raises(ConfigError, match="none, basic, extended, all"):
        optimize(BERT, tmp_path / "none", level="fast", config=PORTABLE)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="hard-swishes"):
        optimize(BERT, tmp_path / "none", passes=["fast"], config=PORTABLE)


def test_a_budget_chooses_or_writes_nothing(tmp_path: Path) -> None:
    small, none = tmp_path / "small", tmp_path / "none"
    quick: dict[str, Any] = {"texts": TEXTS, "config": PORTABLE, "rounds": 6, "seconds": 0.005}
    report = optimize(BERT, small, budget=["cosine>=0.9"], prune=0.05, **quick)
    told = report.to_dict()
    assert "pruned" in {point["candidate"]["technique"] for point in told["points"]}
    assert report.written == small.exists() == (told["chosen"] is not None)
    missed = optimize(BERT, none, budget=["size<=1B"], **quick)
    assert not missed.written and not none.exists() and missed.to_dict()["why"]


def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="nothing is to be optimised"):
        optimize(BERT, out, config=PORTABLE)
    with pytest.raises(ConfigError, match='"static" or "dynamic"'):
        optimize(BERT, out, int8="fast", config=PORTABLE)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="small"):
        optimize(BERT, out, budget=["small"], texts=TEXTS, config=PORTABLE)
    with pytest.raises(ConfigError, match="`rounds` and `seconds`"):
        optimize(BERT, out, prune=0.1, rounds=6, texts=TEXTS, config=PORTABLE)
    with pytest.raises(IsovecError, match="no text to prune with"):
        optimize(BERT, out, prune=0.1, config=PORTABLE)
    with pytest.raises(TypeError):
        optimize(BERT, out, prune=0.1, texts=["a text", None], config=PORTABLE)  # type: ignore[list-item]
    assert not out.exists()
    out.mkdir()
    (out / "mine").write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match="something is in this folder"):
        optimize(BERT, out, prune=0.1, texts=TEXTS, config=PORTABLE)
    assert [file.name for file in out.iterdir()] == ["mine"]
