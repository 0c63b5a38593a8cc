"""Triton's clients for the Open Inference Protocol, over HTTP and over gRPC."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tritonclient import grpc
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

TEXTS = ["the cat sat on a mat", "stöcks fell"]


@pytest.fixture
def client(address: str) -> Iterator[InferenceServerClient]:
    with InferenceServerClient(address) as client:
        yield client


def text(texts: list[str], binary: bool) -> InferInput:
    tensor = InferInput("text", [len(texts)], "BYTES")
    tensor.set_data_from_numpy(np.array([text.encode() for text in texts], dtype=object), binary_data=binary)
    return tensor


def test_the_server_and_its_models(client: InferenceServerClient, names: list[str]) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("embeds")
    assert client.is_model_ready("labels", "1")
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata()["name"] == "isovec"
    assert client.get_model_metadata("embeds")["outputs"][0]["shape"] == [-1, 32]
    index = client.get_model_repository_index()
    assert [(model["name"], model["state"]) for model in index] == [(name, "READY") for name in names]


def test_vectors_are_the_same_as_bytes_and_as_numbers(client: InferenceServerClient) -> None:
    found = []
    for binary in (True, False):
        output = InferRequestedOutput("embedding", binary_data=binary)
        answer = client.infer("embeds", [text(TEXTS, binary)], outputs=[output], request_id="one", timeout=10_000_000)
        assert answer.get_response()["id"] == "one"
        found.append(answer.as_numpy("embedding"))
    assert found[0].shape == (2, 32)
    assert found[0].dtype == np.float32
    assert np.array_equal(*found)
    assert np.linalg.norm(found[0], axis=1) == pytest.approx(1.0, abs=1e-5)


def test_errors_have_their_message(client: InferenceServerClient) -> None:
    for model, texts, said in (("nobody", TEXTS, "not served here"), ("embeds", [""], "is empty"), ("labels", TEXTS, "embedding model")):
        with pytest.raises(InferenceServerException, match=said):
            client.infer(model, [text(texts, True)])


def test_grpc_gives_the_same_vectors(address: str, client: InferenceServerClient) -> None:
    plain = client.infer("embeds", [text(TEXTS, True)]).as_numpy("embedding")
    with grpc.InferenceServerClient(address) as calls:
        assert calls.is_server_live()
        assert calls.is_server_ready()
        assert calls.is_model_ready("labels")
        assert calls.get_server_metadata().name == "isovec"
        assert list(calls.get_model_metadata("embeds").outputs[0].shape) == [-1, 32]
        tensor = grpc.InferInput("text", [len(TEXTS)], "BYTES")
        tensor.set_data_from_numpy(np.array([text.encode() for text in TEXTS], dtype=object))
        answer = calls.infer("embeds", [tensor], request_id="one", client_timeout=10, timeout=10_000_000)
        assert answer.get_response().id == "one"
        assert np.array_equal(answer.as_numpy("embedding"), plain)
        with pytest.raises(InferenceServerException, match="not served here"):
            calls.infer("nobody", [tensor])
