"""OpenAI's own client."""

from __future__ import annotations

import math

import numpy as np
import openai
import pytest
from openai import OpenAI

TEXTS = ["the cat sat on a mat", "stocks fell", "rain came over old hills again"]


@pytest.fixture
def client(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def test_vectors_are_the_same_in_base64_as_in_numbers(client: OpenAI) -> None:
    # Without a word the client asks for base64.
    coded = client.embeddings.create(model="embeds", input=TEXTS)
    plain = client.embeddings.create(model="embeds", input=TEXTS, encoding_format="float")
    # JSON has the shortest digits that tell a 32-bit float from its neighbours.
    bits = [np.array([row.embedding for row in answer.data], dtype=np.float32) for answer in (coded, plain)]
    assert np.array_equal(*bits)
    assert [row.index for row in coded.data] == [0, 1, 2]
    assert coded.model == "embeds"
    assert coded.usage.total_tokens == coded.usage.prompt_tokens > 0
    for row in coded.data:
        assert math.isclose(math.hypot(*row.embedding), 1.0, rel_tol=1e-5)


def test_one_text_fewer_dimensions_and_token_ids(client: OpenAI) -> None:
    one = client.embeddings.create(model="embeds", input=TEXTS[0], dimensions=8)
    assert len(one.data[0].embedding) == 8
    whole = client.embeddings.create(model="embeds", input=[[7, 8, 9], [10]])
    first = client.embeddings.create(model="embeds", input=[7, 8, 9])
    assert whole.data[0].embedding == pytest.approx(first.data[0].embedding, abs=1e-6)
    assert whole.data[1].embedding != whole.data[0].embedding


def test_models_are_listed(client: OpenAI, names: list[str]) -> None:
    assert [model.id for model in client.models.list()] == names
    assert client.models.retrieve("embeds").object == "model"


@pytest.mark.parametrize(
    ("asked", "error", "code"),
    [
        ({"model": "nobody", "input": "a"}, openai.NotFoundError, "model_not_found"),
        ({"model": "labels", "input": "a"}, openai.BadRequestError, "model_not_supported"),
        ({"model": "embeds", "input": ""}, openai.BadRequestError, None),
        ({"model": "embeds", "input": []}, openai.BadRequestError, "empty_array"),
        ({"model": "embeds", "input": ["a"] * 2049}, openai.BadRequestError, "array_above_max_length"),
        ({"model": "embeds", "input": [10**6]}, openai.BadRequestError, None),
        ({"model": "embeds", "input": "a", "dimensions": 0}, openai.BadRequestError, None),
    ],
)
def test_errors_are_the_clients_own(client: OpenAI, asked: dict, error: type[openai.APIStatusError], code: str | None) -> None:
    with pytest.raises(error) as raised:
        client.embeddings.create(**asked)
    assert raised.value.code == code
    assert raised.value.type == "invalid_request_error"
