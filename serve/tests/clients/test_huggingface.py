"""Hugging Face's client for text-embeddings-inference."""

from __future__ import annotations

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

TEXTS = ["the cat sat on a mat", "stocks fell"]


def test_vectors(url: str) -> None:
    client = InferenceClient(model=url)
    one = client.feature_extraction(TEXTS[0])
    assert one.shape == (1, 32)
    assert np.linalg.norm(one) == pytest.approx(1.0, abs=1e-5)
    assert np.array_equal(client.feature_extraction(TEXTS[0], normalize=True, truncate=True), one)


def test_the_cosine_with_other_sentences(url: str) -> None:
    scores = InferenceClient(model=f"{url}/similarity").sentence_similarity(TEXTS[0], TEXTS)
    assert scores[0] == pytest.approx(1.0, abs=1e-5)
    assert scores[1] < scores[0]


def test_an_error_is_the_clients_own(url: str) -> None:
    with pytest.raises(HfHubHTTPError) as raised:
        InferenceClient(model=f"{url}/embed").feature_extraction("")
    assert raised.value.response.status_code == 422
