"""Models made smaller: the folder that is written loads, and the report says what it lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import BERT, CLIP, DATA, PORTABLE
from isovec import ConfigError, Embedder, FileError, ImageClassifier, IsovecError, optimize
from test_pictures import png

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


def test_languages_keep_their_tokens(tmp_path: Path) -> None:
    told = optimize(BERT, tmp_path / "en", keep_languages=["en"], texts=TEXTS, config=PORTABLE).to_dict()
    assert any(step["technique"] == "vocabulary" for step in told["steps"])
    assert told["quality"]["identical"] == told["quality"]["texts"] == len(TEXTS)
    with pytest.raises(IsovecError, match="no letters are known"):
        optimize(BERT, tmp_path / "none", keep_languages=["xx"], config=PORTABLE)


def test_nodes_in_int8_are_looked_at_one_by_one(tmp_path: Path) -> None:
    runtime = {"engine": "onnxruntime"}
    how: dict[str, Any] = {"int8": "dynamic", "texts": TEXTS, "config": runtime, "each_node": True}
    eight = optimize(BERT, tmp_path / "eight", **how).to_dict()["products"]
    seven = optimize(BERT, tmp_path / "seven", seven_bits=True, **how).to_dict()["products"]
    assert any(product["int8"] for product in eight)
    for product in eight + seven:
        assert (product["alone"] is not None) == product["int8"]
    alone = [product["alone"]["cosine_mean"] for product in eight if product["int8"]]
    assert 0.9 < min(alone) < 1
    ratios = [(one["sqnr"], other["sqnr"]) for one, other in zip(eight, seven, strict=True) if one["smooth"] is not None]
    assert ratios and all(less < more for more, less in ratios)


def test_a_budget_chooses_or_writes_nothing(tmp_path: Path) -> None:
    small, none = tmp_path / "small", tmp_path / "none"
    quick: dict[str, Any] = {"texts": TEXTS, "config": PORTABLE, "rounds": 6, "seconds": 0.005}
    report = optimize(BERT, small, budget=["cosine>=0.9"], prune=0.05, **quick)
    told = report.to_dict()
    assert "pruned" in {point["candidate"]["technique"] for point in told["points"]}
    assert report.written == small.exists() == (told["chosen"] is not None)
    missed = optimize(BERT, none, budget=["size<=1B"], **quick)
    assert not missed.written and not none.exists() and missed.to_dict()["why"]


NETWORK = DATA / "tiny-network"
COLOURS = [(at * 20, 255 - at * 13, at * 37 % 256) for at in range(12)]
PICTURES = [png(colour) for colour in COLOURS]
OTHERS = [png((colour[2], colour[0], colour[1])) for colour in COLOURS]


def test_a_network_is_calibrated_with_other_pictures(tmp_path: Path, engine: dict[str, Any]) -> None:
    small, same = tmp_path / "small", tmp_path / "same"
    # The portable engine of this package computes convolutions in f32 alone.
    int8 = engine["engine"] == "onnxruntime"
    how: dict[str, Any] = {"int8": "static"} if int8 else {"prune": 0.05}
    file = tmp_path / "a picture"
    file.write_bytes(OTHERS[0])
    report = optimize(NETWORK, small, images=PICTURES, calibrate_images=[file, *OTHERS[1:]], config=engine, **how)
    told = report.to_dict()
    assert told["of_pictures"] and told["quality"]["texts"] == len(PICTURES)
    assert "pictures a second" in report.to_markdown()
    assert any(layer["int8"] for layer in told["products"]) == int8
    before, after = (ImageClassifier(source, config=engine) for source in (NETWORK, small))
    old, new = (model.scores(PICTURES, scores="logits") for model in (before, after))
    assert after.labels == before.labels and (old != new).any()
    cosines = (old * new).sum(axis=1) / ((old**2).sum(axis=1) * (new**2).sum(axis=1)) ** 0.5
    assert min(cosines) == pytest.approx(told["quality"]["cosine_worst"], abs=1e-4)
    assert (0.99 if int8 else 0.5) < min(cosines) < 1
    # It is the pictures to calibrate with that decide, and without them those that are compared.
    optimize(NETWORK, same, images=OTHERS, config=engine, **how)
    assert (same / "model.onnx").read_bytes() == (small / "model.onnx").read_bytes()


def test_a_budget_over_pictures(tmp_path: Path, engine: dict[str, Any]) -> None:
    small, none = tmp_path / "small", tmp_path / "none"
    quick: dict[str, Any] = {"images": PICTURES, "config": engine, "rounds": 6, "seconds": 0.005}
    network = engine["engine"] == "onnxruntime"
    model = NETWORK if network else CLIP
    report = optimize(model, small, budget=["cosine>=0.9", "recall@10>=0.1"], calibrate_images=OTHERS, **quick)
    told = report.to_dict()
    assert told["of_pictures"] and told["texts"] == len(PICTURES)
    tried = {point["candidate"]["technique"]: point["tried"] for point in told["points"]}
    assert set(tried) == {"f16", "int8", "int8-static", "int8-dynamic"}
    refused = {technique for technique, what in tried.items() if "refused" in what}
    # The portable engine of this package computes no products in int8.
    assert refused == ({"int8-dynamic"} if network else {"int8-static", "int8-dynamic"})
    assert ("static scales" if network else "engine portable") in tried["int8-dynamic"]["refused"]
    assert report.written == small.exists() == (told["chosen"] is not None)
    missed = optimize(model, none, budget=["size<=1B"], **quick)
    assert not missed.written and not none.exists()


def test_what_is_wrong_with_pictures_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ask: dict[str, Any] = {"config": PORTABLE, "int8": "static"}
    with pytest.raises(TypeError, match=r"`images` is one picture.*brackets"):
        optimize(NETWORK, out, images=PICTURES[0], **ask)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"calibrate_images\[1\] is of type int"):
        optimize(NETWORK, out, images=PICTURES, calibrate_images=[PICTURES[0], 3], **ask)  # type: ignore[list-item]
    with pytest.raises(IsovecError, match="1 picture to calibrate"):
        optimize(NETWORK, out, images=PICTURES[:1], **ask)
    with pytest.raises(ConfigError, match="one of the two"):
        optimize(NETWORK, out, images=PICTURES, texts=TEXTS, **ask)
    with pytest.raises(ConfigError, match="pictures to calibrate with belong"):
        optimize(NETWORK, out, images=PICTURES, calibrate_images=OTHERS, dtype="f16", config=PORTABLE)
    with pytest.raises(IsovecError, match="picture 1"):
        optimize(NETWORK, out, images=[PICTURES[0], b"no picture", PICTURES[2]], **ask)
    assert not out.exists()


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
