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


def test_llama_index_embeds() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    from isovec.llama_index import IsovecEmbedding

    embedder = Embedder(BERT)
    embedding = IsovecEmbedding(embedder)
    assert embedding.embedder is embedder and embedding.model_name == embedder.model_name
    passages = embedder.embed_passages(TEXTS).tolist()
    assert embedding.get_text_embedding_batch(TEXTS) == passages
    assert embedding.get_text_embedding(TEXTS[0]) == passages[0]
    assert embedding.get_query_embedding("a dog") == embedder.embed_query("a dog").tolist()

    async def main() -> None:
        assert await embedding.aget_text_embedding_batch(TEXTS) == passages
        assert await embedding.aget_text_embedding(TEXTS[1]) == passages[1]
        assert await embedding.aget_query_embedding("a dog") == embedding.get_query_embedding("a dog")

    asyncio.run(main())
    texts = ["the dog has a tail", "money in the bank", "a river"]
    model = IsovecEmbedding(BERT, config={"engine": "portable"})
    index = VectorStoreIndex([TextNode(text=text) for text in texts], embed_model=model)
    [best] = embedder.rank("money in the bank", texts, k=1)
    [found] = index.as_retriever(similarity_top_k=1).retrieve("money in the bank")
    assert found.node.get_content() == texts[best.index]
    with pytest.raises(TextError, match="None"):
        embedding.get_text_embedding_batch(["a", None])


def test_chroma_embeds_and_finds_its_model_again(tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    import chromadb
    from chromadb.config import Settings

    from isovec.chroma import IsovecEmbeddingFunction

    embedder = Embedder(BERT, config={"engine": "portable"})
    function = IsovecEmbeddingFunction(BERT, config={"engine": "portable"})
    assert np.stack(function(TEXTS)).tobytes() == embedder.embed_passages(TEXTS).tobytes()
    assert np.stack(function.embed_query(TEXTS)).tobytes() == embedder.embed_queries(TEXTS).tobytes()
    assert function.default_space() == "cosine"
    settings = Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(tmp_path), settings)
    texts = ["the dog has a tail", "money in the bank", "a river"]
    # Chroma's own functions of texts have that type, too.
    made = client.create_collection("texts", embedding_function=function)  # type: ignore[arg-type]
    made.add(ids=["0", "1", "2"], documents=texts)
    # The collection knows its function by its name and its configuration.
    collection = client.get_collection("texts")
    [best] = embedder.rank("money in the bank", texts, k=1)
    found = collection.query(query_texts=["money in the bank"], n_results=1)
    assert found["ids"] == [[str(best.index)]]
    kept = collection.get(include=["embeddings"])["embeddings"]
    assert kept is not None
    np.testing.assert_array_equal(np.asarray(kept, np.float32), embedder.embed_passages(texts))
    with pytest.raises(ValueError, match="another collection"):
        function.validate_config_update(function.get_config(), function.get_config() | {"model": "other"})
    with pytest.raises(TextError, match="None"):
        function.embed_query([None])  # type: ignore[list-item]


def test_lancedb_embeds_and_finds_its_model_again(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    import lancedb
    import pyarrow
    from lancedb.embeddings import EmbeddingFunctionConfig, get_registry

    from isovec.lancedb import IsovecEmbeddings

    assert get_registry().get("isovec") is IsovecEmbeddings
    embedder = Embedder(BERT, config={"engine": "portable"})
    function: IsovecEmbeddings = IsovecEmbeddings.create(  # type: ignore[no-untyped-call]
        name=str(BERT), options={"config": {"engine": "portable"}}
    )
    assert function.ndims() == embedder.dimension
    texts = ["the dog has a tail", "money in the bank", "a river"]
    schema = pyarrow.schema(
        [("text", pyarrow.string()), ("vector", pyarrow.list_(pyarrow.float32(), embedder.dimension))]
    )
    config = EmbeddingFunctionConfig(vector_column="vector", source_column="text", function=function)
    table = lancedb.connect(tmp_path).create_table("texts", schema=schema, embedding_functions=[config])
    table.add([{"text": text} for text in texts])
    # The table knows its function by its name and its configuration.
    table = lancedb.connect(tmp_path).open_table("texts")
    kept = np.stack(table.to_pandas()["vector"].to_numpy())
    np.testing.assert_array_equal(kept, embedder.embed_passages(texts))
    [best] = embedder.rank("money in the bank", texts, k=1)
    [found] = table.search("money in the bank").limit(1).to_list()
    assert found["text"] == texts[best.index]
    # A null has no vector, and what is no text is an error at once.
    [there, missing] = function.compute_source_embeddings(pyarrow.array(["a", None]))
    assert missing is None
    np.testing.assert_array_equal(there, embedder.embed_passage("a"))
    with pytest.raises(TextError, match="int"):
        function.compute_source_embeddings_with_retry([3])
