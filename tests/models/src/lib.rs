//! Models for tests and benchmarks, made from seeds: the same bytes on every machine, and no download.
//!
//! - [`checkpoint`], [`rng`]: a configuration with its tensors, and the numbers in them.
//! - [`models`], [`full_size`]: a tiny model of each family, and models of the sizes that people load.
//! - [`reference`](mod@reference): the expected outputs of a model, from an implementation at f64 that shares no code
//!   with the conversion.
//! - [`deberta`]: encoders whose scores depend on contents and distances, with theirs.
//! - [`t5`]: the encoders of T5, with theirs.
//! - [`gte`], [`jina`], [`jina_v3`]: encoders whose authors publish them with code of their own, with theirs.
//! - [`decoders`]: decoders, with theirs; [`embedding_gemma`]: one with all files of a published model.
//! - [`decoder_reranker`]: decoders that score pairs, with theirs.
//! - [`heads`]: classifiers of texts, with theirs.
//! - [`sparse`]: models of sparse vectors, with theirs.
//! - [`late`]: models of late interaction, with theirs, one of them in `tests/data/tiny-colbert`.
//! - [`m3`]: BGE-M3 with its heads; [`torch_file`]: the files of PyTorch that it has them in.
//! - [`pictures`]: models of pictures, with theirs.
//! - [`static_embedding`]: models of static embeddings, with theirs.
//! - [`convolutions`]: convolutional networks.
//! - [`exact`]: ONNX operators at f64.
//! - [`bundles`], [`texts`]: a model as engines take it, and batches to run on it.
//! - [`tiny`], [`classifier`], [`reranker`](mod@reranker), [`tiny_clip`], [`tiny_network`]: the models in `tests/data/tiny-bert` and its neighbours, which the example `tiny_model` writes.
//!
//! Everything here panics where it cannot go on, because a test should stop there.

pub mod bundles;
pub mod checkpoint;
pub mod classifier;
pub mod convolutions;
pub mod deberta;
pub mod decoder_reranker;
pub mod decoders;
pub mod embedding_gemma;
pub mod exact;
pub mod full_size;
pub mod gte;
pub mod heads;
pub mod jina;
pub mod jina_v3;
pub mod late;
pub mod m3;
pub mod models;
mod picture_files;
pub mod pictures;
pub mod reference;
pub mod reranker;
pub mod rng;
pub mod sparse;
pub mod static_embedding;
pub mod t5;
pub mod texts;
pub mod tiny;
pub mod tiny_clip;
pub mod tiny_network;
pub mod torch_file;
