//! Ids of well-known models, to be written instead of strings.
//!
//! Any other id, folder or set of files works as well: see [`ModelSource`](crate::ModelSource). If a model was
//! trained with prompts that its files do not name, the documentation of the constant says so. Set them with
//! [`with_query_prompt`](crate::EmbeddingConfig::with_query_prompt) and
//! [`with_passage_prompt`](crate::EmbeddingConfig::with_passage_prompt).

/// English, 384 dimensions, 22 M parameters: the one to begin with.
pub const ALL_MINILM_L6_V2: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// English, 384 dimensions, 33 M parameters.
pub const ALL_MINILM_L12_V2: &str = "sentence-transformers/all-MiniLM-L12-v2";
/// English, 768 dimensions, 109 M parameters (MPNet).
pub const ALL_MPNET_BASE_V2: &str = "sentence-transformers/all-mpnet-base-v2";
/// 50 languages, 384 dimensions, 118 M parameters.
pub const PARAPHRASE_MULTILINGUAL_MINILM_L12_V2: &str =
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2";
/// 50 languages, 768 dimensions, 278 M parameters.
pub const PARAPHRASE_MULTILINGUAL_MPNET_BASE_V2: &str =
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2";
/// English, 384 dimensions. Query prompt: `Represent this sentence for searching relevant passages: `.
pub const BGE_SMALL_EN_V1_5: &str = "BAAI/bge-small-en-v1.5";
/// English, 768 dimensions. Query prompt: `Represent this sentence for searching relevant passages: `.
pub const BGE_BASE_EN_V1_5: &str = "BAAI/bge-base-en-v1.5";
/// English, 1024 dimensions. Query prompt: `Represent this sentence for searching relevant passages: `.
pub const BGE_LARGE_EN_V1_5: &str = "BAAI/bge-large-en-v1.5";
/// More than 100 languages, 1024 dimensions, up to 8192 tokens (XLM-R).
pub const BGE_M3: &str = "BAAI/bge-m3";
/// About 100 languages, 384 dimensions. Prompts: `query: ` and `passage: `.
pub const MULTILINGUAL_E5_SMALL: &str = "intfloat/multilingual-e5-small";
/// About 100 languages, 768 dimensions. Prompts: `query: ` and `passage: `.
pub const MULTILINGUAL_E5_BASE: &str = "intfloat/multilingual-e5-base";
/// About 100 languages, 1024 dimensions. Prompts: `query: ` and `passage: `.
pub const MULTILINGUAL_E5_LARGE: &str = "intfloat/multilingual-e5-large";
/// English, 1024 dimensions. Query prompt: `Represent this sentence for searching relevant passages: `.
pub const MXBAI_EMBED_LARGE_V1: &str = "mixedbread-ai/mxbai-embed-large-v1";
/// More than 100 languages, 1024 dimensions, matryoshka down to 32, up to 32,768 tokens, 600 M parameters (Qwen3, a decoder). Its files
/// name a prompt for queries.
pub const QWEN3_EMBEDDING_0_6B: &str = "Qwen/Qwen3-Embedding-0.6B";
/// More than 100 languages, 768 dimensions, matryoshka down to 128, up to 2048 tokens, 300 M parameters (Gemma 3). Its files name
/// prompts. The hub gives it to those who accepted its licence: set a token.
pub const EMBEDDINGGEMMA_300M: &str = "google/embeddinggemma-300m";
/// English, 768 dimensions, matryoshka down to 256, up to 8192 tokens (ModernBERT). Prompts:
/// `search_query: ` and `search_document: `.
pub const MODERNBERT_EMBED_BASE: &str = "nomic-ai/modernbert-embed-base";
