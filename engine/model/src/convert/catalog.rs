//! Well-known models, their architecture, and how isovec loads each.
//!
//! It has every model that fastembed-rs 7.5 offers, by the id and file that it downloads, so that its users can look
//! up their model. The facts about a repository (architecture, files) are those that its authors publish.

use crate::head::Pooling;

/// The task of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Task {
    /// One dense vector for each input, which isovec supports.
    Dense,
    /// A weight for each word of the vocabulary, which `SparseEmbedder` gives.
    Sparse,
    /// A relevance score for a pair, which `Reranker` gives.
    Rerank,
    /// A vector for an image.
    Image,
    /// Dense, sparse and per-token vectors at once.
    Several,
}

/// How isovec loads a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loading {
    /// The repository's `config.json` and safetensors are converted. The ONNX file loads too, if it is named.
    Converts,
    /// By the ONNX file.
    Onnx {
        /// Whether the file keeps to ONNX's own operators. One that does not needs ONNX Runtime.
        standard_operators: bool,
        /// A repository with the same model as safetensors, which converts.
        original: Option<&'static str>,
    },
    /// Not at all.
    Refused {
        /// The reason, and an alternative.
        reason: &'static str,
    },
}

/// A model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The repository's id on the hub.
    pub id: &'static str,
    /// The ONNX file in it, if it has one.
    pub file: Option<&'static str>,
    /// Its task.
    pub task: Task,
    /// `model_type` in its `config.json`; for models without one, the name of the architecture.
    pub model_type: &'static str,
    /// How its tokens' vectors become one. `None` where the graph does that itself, or where the
    /// task has no such vector.
    pub pooling: Option<Pooling>,
    /// How isovec loads it.
    pub loading: Loading,
}

/// All entries.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The entries of a repository, one for each of its files; upper and lower case are alike, as
/// they are to the hub.
pub fn find(id: &str) -> impl Iterator<Item = &'static Entry> {
    ENTRIES
        .iter()
        .filter(move |entry| entry.id.eq_ignore_ascii_case(id))
}

const fn converts(
    id: &'static str,
    file: &'static str,
    model_type: &'static str,
    pooling: Pooling,
) -> Entry {
    Entry {
        id,
        file: Some(file),
        task: Task::Dense,
        model_type,
        pooling: Some(pooling),
        loading: Loading::Converts,
    }
}

/// A repository without an ONNX file.
const fn only_safetensors(id: &'static str, model_type: &'static str, pooling: Pooling) -> Entry {
    Entry {
        file: None,
        ..converts(id, "", model_type, pooling)
    }
}

const fn reranker(
    id: &'static str,
    file: &'static str,
    model_type: &'static str,
    loading: Loading,
) -> Entry {
    Entry {
        id,
        file: Some(file),
        task: Task::Rerank,
        model_type,
        pooling: None,
        loading,
    }
}

/// By an ONNX file of ONNX's own operators.
const fn by_file(original: Option<&'static str>) -> Loading {
    Loading::Onnx {
        standard_operators: true,
        original,
    }
}

const fn onnx(
    id: &'static str,
    file: &'static str,
    model_type: &'static str,
    pooling: Option<Pooling>,
    original: Option<&'static str>,
) -> Entry {
    Entry {
        id,
        file: Some(file),
        task: Task::Dense,
        model_type,
        pooling,
        loading: by_file(original),
    }
}

/// An ONNX file with operators of ONNX Runtime's own.
const fn runtime_only(
    id: &'static str,
    file: &'static str,
    model_type: &'static str,
    pooling: Option<Pooling>,
    original: Option<&'static str>,
) -> Entry {
    Entry {
        loading: Loading::Onnx {
            standard_operators: false,
            original,
        },
        ..onnx(id, file, model_type, pooling, original)
    }
}

const fn refused(
    id: &'static str,
    file: Option<&'static str>,
    task: Task,
    model_type: &'static str,
    reason: &'static str,
) -> Entry {
    Entry {
        id,
        file,
        task,
        model_type,
        pooling: None,
        loading: Loading::Refused { reason },
    }
}

const MODEL: &str = "model.onnx";
const OPTIMIZED: &str = "model_optimized.onnx";
const IN_FOLDER: &str = "onnx/model.onnx";
const QUANTIZED: &str = "onnx/model_quantized.onnx";

const MEAN: Option<Pooling> = Some(Pooling::Mean);
const CLS: Option<Pooling> = Some(Pooling::Cls);
const GEMMA: Option<&str> = Some("google/embeddinggemma-300m");

const SPARSE_QUERIES: &str = "its queries are weighed by a table (idf.json), and none of its files says so; use \
                              opensearch-project/opensearch-neural-sparse-encoding-doc-v3-gte";
const IMAGE: &str = "it reads pictures, and this table is about texts; `ImageEmbedder` loads files \
                     with one input of whole pictures";
const SEES: &str = "it reads pictures and texts in one decoder, which is not converted; \
                    use Qwen/Qwen3-Embedding-0.6B for texts, or a CLIP for both";
const OWN_CODE: &str = "it brings code of its own, which also adds the token at the end of a text; use \
                        Qwen/Qwen3-Embedding-0.6B";
const ASKS: &str = "its score is how likely a decoder says yes, and its files do not say which tokens and words it \
                    is asked with; take a revision with the files of sentence-transformers 5.4 (modules.json and \
                    chat_template.jinja), which loads";

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    // Dense.
    onnx("Qdrant/all-MiniLM-L6-v2-onnx", MODEL, "bert", MEAN, Some("sentence-transformers/all-MiniLM-L6-v2")),
    onnx("Xenova/all-MiniLM-L6-v2", QUANTIZED, "bert", MEAN, Some("sentence-transformers/all-MiniLM-L6-v2")),
    onnx("Xenova/all-MiniLM-L12-v2", IN_FOLDER, "bert", MEAN, Some("sentence-transformers/all-MiniLM-L12-v2")),
    onnx("Xenova/all-MiniLM-L12-v2", QUANTIZED, "bert", MEAN, Some("sentence-transformers/all-MiniLM-L12-v2")),
    onnx("Xenova/all-mpnet-base-v2", IN_FOLDER, "mpnet", MEAN, Some("sentence-transformers/all-mpnet-base-v2")),
    onnx("Xenova/bge-base-en-v1.5", IN_FOLDER, "bert", CLS, Some("BAAI/bge-base-en-v1.5")),
    runtime_only("Qdrant/bge-base-en-v1.5-onnx-Q", OPTIMIZED, "bert", CLS, Some("BAAI/bge-base-en-v1.5")),
    onnx("Xenova/bge-large-en-v1.5", IN_FOLDER, "bert", CLS, Some("BAAI/bge-large-en-v1.5")),
    runtime_only("Qdrant/bge-large-en-v1.5-onnx-Q", OPTIMIZED, "bert", CLS, Some("BAAI/bge-large-en-v1.5")),
    onnx("Xenova/bge-small-en-v1.5", IN_FOLDER, "bert", CLS, Some("BAAI/bge-small-en-v1.5")),
    runtime_only("Qdrant/bge-small-en-v1.5-onnx-Q", OPTIMIZED, "bert", CLS, Some("BAAI/bge-small-en-v1.5")),
    converts("nomic-ai/nomic-embed-text-v1", IN_FOLDER, "nomic_bert", Pooling::Mean),
    converts("nomic-ai/nomic-embed-text-v1.5", IN_FOLDER, "nomic_bert", Pooling::Mean),
    onnx("nomic-ai/nomic-embed-text-v1.5", QUANTIZED, "nomic_bert", MEAN, Some("nomic-ai/nomic-embed-text-v1.5")),
    runtime_only("Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q", OPTIMIZED, "bert", MEAN, Some("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2")),
    onnx("Xenova/paraphrase-multilingual-MiniLM-L12-v2", IN_FOLDER, "bert", MEAN, Some("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2")),
    onnx("Xenova/paraphrase-multilingual-mpnet-base-v2", IN_FOLDER, "xlm-roberta", MEAN, Some("sentence-transformers/paraphrase-multilingual-mpnet-base-v2")),
    onnx("Xenova/bge-small-zh-v1.5", IN_FOLDER, "bert", CLS, Some("BAAI/bge-small-zh-v1.5")),
    onnx("Xenova/bge-large-zh-v1.5", IN_FOLDER, "bert", CLS, Some("BAAI/bge-large-zh-v1.5")),
    onnx("BAAI/bge-m3", IN_FOLDER, "xlm-roberta", CLS, None),
    converts("lightonai/modernbert-embed-large", IN_FOLDER, "modernbert", Pooling::Mean),
    converts("intfloat/multilingual-e5-small", IN_FOLDER, "bert", Pooling::Mean),
    converts("intfloat/multilingual-e5-base", IN_FOLDER, "xlm-roberta", Pooling::Mean),
    onnx("Qdrant/multilingual-e5-large-onnx", MODEL, "xlm-roberta", MEAN, Some("intfloat/multilingual-e5-large")),
    converts("mixedbread-ai/mxbai-embed-large-v1", IN_FOLDER, "bert", Pooling::Cls),
    onnx("mixedbread-ai/mxbai-embed-large-v1", QUANTIZED, "bert", CLS, Some("mixedbread-ai/mxbai-embed-large-v1")),
    converts("Alibaba-NLP/gte-base-en-v1.5", IN_FOLDER, "new", Pooling::Cls),
    onnx("Alibaba-NLP/gte-base-en-v1.5", QUANTIZED, "new", CLS, Some("Alibaba-NLP/gte-base-en-v1.5")),
    converts("Alibaba-NLP/gte-large-en-v1.5", IN_FOLDER, "new", Pooling::Cls),
    onnx("Alibaba-NLP/gte-large-en-v1.5", QUANTIZED, "new", CLS, Some("Alibaba-NLP/gte-large-en-v1.5")),
    onnx("Qdrant/clip-ViT-B-32-text", MODEL, "clip", None, None),
    converts("jinaai/jina-embeddings-v2-base-code", IN_FOLDER, "bert", Pooling::Mean),
    converts("jinaai/jina-embeddings-v2-base-en", MODEL, "bert", Pooling::Mean),
    runtime_only("onnx-community/embeddinggemma-300m-ONNX", IN_FOLDER, "gemma3_text", None, GEMMA),
    runtime_only("onnx-community/embeddinggemma-300m-ONNX", "onnx/model_q4.onnx", "gemma3_text", None, GEMMA),
    runtime_only("onnx-community/embeddinggemma-300m-ONNX", QUANTIZED, "gemma3_text", None, GEMMA),
    converts("snowflake/snowflake-arctic-embed-xs", IN_FOLDER, "bert", Pooling::Cls),
    onnx("snowflake/snowflake-arctic-embed-xs", QUANTIZED, "bert", CLS, Some("snowflake/snowflake-arctic-embed-xs")),
    converts("snowflake/snowflake-arctic-embed-s", IN_FOLDER, "bert", Pooling::Cls),
    onnx("snowflake/snowflake-arctic-embed-s", QUANTIZED, "bert", CLS, Some("snowflake/snowflake-arctic-embed-s")),
    converts("snowflake/snowflake-arctic-embed-m", IN_FOLDER, "bert", Pooling::Cls),
    onnx("snowflake/snowflake-arctic-embed-m", QUANTIZED, "bert", CLS, Some("snowflake/snowflake-arctic-embed-m")),
    converts("snowflake/snowflake-arctic-embed-m-long", IN_FOLDER, "nomic_bert", Pooling::Cls),
    onnx("snowflake/snowflake-arctic-embed-m-long", QUANTIZED, "nomic_bert", CLS, Some("snowflake/snowflake-arctic-embed-m-long")),
    converts("snowflake/snowflake-arctic-embed-l", IN_FOLDER, "bert", Pooling::Cls),
    onnx("snowflake/snowflake-arctic-embed-l", QUANTIZED, "bert", CLS, Some("snowflake/snowflake-arctic-embed-l")),
    only_safetensors("nomic-ai/nomic-embed-text-v2-moe", "nomic_bert", Pooling::Mean),
    only_safetensors("Qwen/Qwen3-Embedding-0.6B", "qwen3", Pooling::LastToken),
    only_safetensors("Qwen/Qwen3-Embedding-4B", "qwen3", Pooling::LastToken),
    only_safetensors("Qwen/Qwen3-Embedding-8B", "qwen3", Pooling::LastToken),
    only_safetensors("google/embeddinggemma-300m", "gemma3_text", Pooling::Mean),
    only_safetensors("intfloat/e5-mistral-7b-instruct", "mistral", Pooling::LastToken),
    only_safetensors("Salesforce/SFR-Embedding-Mistral", "mistral", Pooling::LastToken),
    only_safetensors("Salesforce/SFR-Embedding-2_R", "mistral", Pooling::LastToken),
    only_safetensors("Linq-AI-Research/Linq-Embed-Mistral", "mistral", Pooling::LastToken),
    refused("Alibaba-NLP/gte-Qwen2-1.5B-instruct", None, Task::Dense, "qwen2", OWN_CODE),
    refused("Alibaba-NLP/gte-Qwen2-7B-instruct", None, Task::Dense, "qwen2", OWN_CODE),
    refused("Qwen/Qwen3-VL-Embedding-2B", None, Task::Dense, "qwen3_vl", SEES),
    // Dense, sparse and per-token in one.
    refused("gpahal/bge-m3-onnx-int8", Some("model_quantized.onnx"), Task::Several, "xlm-roberta", "it gives dense, sparse and per-token vectors at once; load BAAI/bge-m3, with the handle of the one that is wanted"),
    // Sparse.
    Entry { task: Task::Sparse, ..onnx("Qdrant/Splade_PP_en_v1", MODEL, "bert", None, None) },
    Entry { task: Task::Sparse, ..onnx("BAAI/bge-m3", IN_FOLDER, "xlm-roberta", None, None) },
    refused("Qdrant/opensearch-neural-sparse-encoding-doc-v3-gte", Some(MODEL), Task::Sparse, "new", SPARSE_QUERIES),
    // Rerankers.
    reranker("BAAI/bge-reranker-base", IN_FOLDER, "xlm-roberta", Loading::Converts),
    reranker("rozgo/bge-reranker-v2-m3", MODEL, "xlm-roberta", by_file(Some("BAAI/bge-reranker-v2-m3"))),
    reranker("jinaai/jina-reranker-v1-turbo-en", IN_FOLDER, "bert", Loading::Converts),
    reranker("jinaai/jina-reranker-v2-base-multilingual", IN_FOLDER, "xlm-roberta", Loading::Converts),
    refused("Qwen/Qwen3-Reranker-0.6B", None, Task::Rerank, "qwen3", ASKS),
    // Images.
    refused("Qdrant/clip-ViT-B-32-vision", Some(MODEL), Task::Image, "clip", IMAGE),
    refused("Qdrant/resnet50-onnx", Some(MODEL), Task::Image, "resnet", IMAGE),
    refused("Qdrant/Unicom-ViT-B-16", Some(MODEL), Task::Image, "unicom", IMAGE),
    refused("Qdrant/Unicom-ViT-B-32", Some(MODEL), Task::Image, "unicom", IMAGE),
    refused("nomic-ai/nomic-embed-vision-v1.5", Some(IN_FOLDER), Task::Image, "nomic_bert", IMAGE),
];
