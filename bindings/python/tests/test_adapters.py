"""The classes with the calls of other libraries."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from conftest import BERT
from isovec import Embedder, SentenceTransformer, TextError

TEXTS = ["the dog has a tail", "money in the bank"]


def test_encode_is_embed() -> None:
    model = SentenceTransformer(BERT, device="cpu")
    embedder = model.embedder
    assert model.encode(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    assert model.encode(TEXTS[0]).tobytes() == embedder.embed_one(TEXTS[0]).tobytes()
    assert model.encode_query(TEXTS).tobytes() == embedder.embed_queries(TEXTS).tobytes()
    assert model.encode_document(TEXTS[0]).tobytes() == embedder.embed_passage(TEXTS[0]).tobytes()
    assert model.encode(TEXTS, prompt_name="query").tobytes() == embedder.embed_queries(TEXTS).tobytes()
    assert model.encode(["a dog"], prompt="the tail of ").tobytes() == embedder.embed(["a dog"], prefix="the tail of ").tobytes()
    assert model.encode(TEXTS, truncate_dim=8, normalize_embeddings=True).shape == (2, 8)
    assert model.encode_query(TEXTS, prompt="the ").tobytes() == embedder.embed(TEXTS, prefix="the ").tobytes()
    rows = model.encode(TEXTS, convert_to_numpy=False)
    assert isinstance(rows, list) and rows[1].tobytes() == embedder.embed(TEXTS)[1].tobytes()


def test_similarity_takes_rows_and_single_vectors() -> None:
    model = SentenceTransformer(BERT)
    vectors = model.encode(TEXTS)
    assert model.similarity(vectors, vectors).shape == (2, 2)
    assert model.similarity(vectors[0], vectors).shape == (1, 2)
    np.testing.assert_allclose(model.similarity(vectors[0], vectors[1])[0, 0], vectors[0] @ vectors[1], atol=1e-6)
    assert (model.similarity_fn_name, model.max_seq_length) == ("cosine", 64)
    assert model.get_sentence_embedding_dimension() == 32


def test_what_differs_is_an_error() -> None:
    model = SentenceTransformer(BERT, prompts={"mine": "of the "}, truncate_dim=16)
    assert model.encode(TEXTS, prompt_name="mine").shape == (2, 16)
    for options in ({"convert_to_tensor": True}, {"precision": "int8"}, {"output_value": "token_embeddings"}):
        with pytest.raises(TypeError):
            model.encode(TEXTS, **options)
    with pytest.raises(TextError, match=r"^texts\[1\] is None"):
        model.encode(["a", None])  # type: ignore[list-item]


def test_names_are_read_as_sentence_transformers_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BERT.parent)
    assert SentenceTransformer("tiny-bert").encode("the dog").shape == (32,)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="sentence-transformers/tiny-bert"):
        SentenceTransformer("tiny-bert", cache_folder=tmp_path, local_files_only=True)


def test_langchain_embeds() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.vectorstores import InMemoryVectorStore

    from isovec.langchain import IsovecEmbeddings

    embedder = Embedder(BERT)
    embeddings = IsovecEmbeddings(embedder)
    assert embeddings.embed_documents(TEXTS) == embedder.embed_passages(TEXTS).tolist()
    assert embeddings.embed_query("a dog") == embedder.embed_query("a dog").tolist()
    store = InMemoryVectorStore(IsovecEmbeddings(BERT, config={"engine": "portable"}))
    passages = ["the dog has a tail", "money in the bank", "a river"]
    store.add_texts(passages)
    [best] = embedder.rank("money in the bank", passages, k=1)
    [found] = store.similarity_search("money in the bank", k=1)
    assert found.page_content == passages[best.index]

    async def main() -> None:
        assert await embeddings.aembed_documents(TEXTS) == embeddings.embed_documents(TEXTS)
        assert await embeddings.aembed_query("a dog") == embeddings.embed_query("a dog")
        [same] = await store.asimilarity_search("money in the bank", k=1)
        assert same.page_content == found.page_content

    asyncio.run(main())
