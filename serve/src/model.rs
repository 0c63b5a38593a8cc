//! A loaded model, whatever it is for.

#[cfg(feature = "image")]
use isovec::ImageEmbedder;
use isovec::{Classifier, Embedder, ModelTask, MultiVectorEmbedder, Reranker, SparseEmbedder};

/// A loaded model that a server is given.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Model {
    /// Gives vectors.
    Embedder(Embedder),
    /// Ranks documents.
    Reranker(Reranker),
    /// Gives labels.
    Classifier(Classifier),
    /// Gives weights of words.
    SparseEmbedder(SparseEmbedder),
    /// Gives a vector for each token.
    MultiVectorEmbedder(MultiVectorEmbedder),
    /// Gives vectors of pictures.
    #[cfg(feature = "image")]
    ImageEmbedder(ImageEmbedder),
}

impl Model {
    /// What it is for.
    pub fn task(&self) -> ModelTask {
        match self {
            Self::Embedder(_) => ModelTask::Embed,
            Self::Reranker(_) => ModelTask::Rerank,
            Self::Classifier(_) => ModelTask::Classify,
            Self::SparseEmbedder(_) => ModelTask::Sparse,
            Self::MultiVectorEmbedder(_) => ModelTask::MultiVector,
            #[cfg(feature = "image")]
            Self::ImageEmbedder(_) => ModelTask::EmbedImages,
        }
    }
}

impl From<Embedder> for Model {
    fn from(embedder: Embedder) -> Self {
        Self::Embedder(embedder)
    }
}

impl From<Reranker> for Model {
    fn from(reranker: Reranker) -> Self {
        Self::Reranker(reranker)
    }
}

impl From<Classifier> for Model {
    fn from(classifier: Classifier) -> Self {
        Self::Classifier(classifier)
    }
}

impl From<SparseEmbedder> for Model {
    fn from(embedder: SparseEmbedder) -> Self {
        Self::SparseEmbedder(embedder)
    }
}

impl From<MultiVectorEmbedder> for Model {
    fn from(embedder: MultiVectorEmbedder) -> Self {
        Self::MultiVectorEmbedder(embedder)
    }
}

#[cfg(feature = "image")]
impl From<ImageEmbedder> for Model {
    fn from(embedder: ImageEmbedder) -> Self {
        Self::ImageEmbedder(embedder)
    }
}
