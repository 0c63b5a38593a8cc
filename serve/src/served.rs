//! A model that is served.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(feature = "image")]
use isovec::ImageEmbedder;
use isovec::config::EffectiveConfig;
use isovec::engine::ProviderInfo;
use isovec::fingerprint::Fingerprint;
use isovec::stats::{QueueCounts, Stats};
use isovec::{
    Classifier, DynamicBatcher, Embedder, ModelTask, MultiVectorEmbedder, MultiVectorOptions,
    Prompt, Reranker, Shutdown, SparseEmbedder, Token,
};
use isovec_http::trace;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::Instrument as _;

use crate::admission::Pace;
use crate::failure::{Failure, Kind};
use crate::model::Model;
use crate::spec::ModelSpec;

/// What was computed so lately says as much as a new probe. Whoever asks again and again has no more computed.
const FRESH: Duration = Duration::from_secs(1);

/// How long a probe that found the queue full waits before it looks again.
const AGAIN: Duration = Duration::from_millis(20);

/// The tasks of models, each in a word.
pub(crate) const TASKS: [&str; 6] = [
    "embed",
    "rerank",
    "classify",
    "sparse",
    "multi_vector",
    "embed_images",
];

/// A loaded model with its queue.
#[derive(Debug)]
pub(crate) struct Queued<H> {
    pub(crate) model: H,
    pub(crate) batcher: DynamicBatcher<H>,
}

#[derive(Debug)]
enum Queue {
    Embed(Queued<Embedder>),
    Rerank(Queued<Reranker>),
    Classify(Queued<Classifier>),
    Sparse(Queued<SparseEmbedder>),
    MultiVector(Queued<MultiVectorEmbedder>),
    #[cfg(feature = "image")]
    EmbedImages(Queued<ImageEmbedder>),
}

/// The same of each kind of model.
macro_rules! each {
    ($served:expr, $queued:ident => $value:expr) => {
        match &$served.queue {
            Queue::Embed($queued) => $value,
            Queue::Rerank($queued) => $value,
            Queue::Classify($queued) => $value,
            Queue::Sparse($queued) => $value,
            Queue::MultiVector($queued) => $value,
            #[cfg(feature = "image")]
            Queue::EmbedImages($queued) => $value,
        }
    };
}

/// A model that is served.
#[derive(Debug)]
pub(crate) struct Served {
    queue: Queue,
    /// As requests name it.
    pub(crate) name: Arc<str>,
    /// Other names that requests may use for it.
    pub(crate) aliases: Vec<String>,
    /// When it was loaded, in seconds since 1970.
    pub(crate) since: u64,
    /// How fast it computes.
    pub(crate) pace: Arc<Pace>,
    /// Held by the probe that is on its way: one is enough.
    probing: Mutex<()>,
    probes: AtomicU64,
}

impl Served {
    pub(crate) fn new(model: Model, name: Option<String>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let queue = match model {
            Model::Embedder(model) => Queue::Embed(Queued {
                batcher: DynamicBatcher::new(&model),
                model,
            }),
            Model::Reranker(model) => Queue::Rerank(Queued {
                batcher: model.batcher(),
                model,
            }),
            Model::Classifier(model) => Queue::Classify(Queued {
                batcher: model.batcher(),
                model,
            }),
            Model::SparseEmbedder(model) => Queue::Sparse(Queued {
                batcher: model.batcher(),
                model,
            }),
            Model::MultiVectorEmbedder(model) => Queue::MultiVector(Queued {
                batcher: model.batcher(),
                model,
            }),
            #[cfg(feature = "image")]
            Model::ImageEmbedder(model) => Queue::EmbedImages(Queued {
                batcher: model.batcher(),
                model,
            }),
        };
        let mut served = Self {
            queue,
            name: "".into(),
            aliases: Vec::new(),
            since: since.map_or(0, |since| since.as_secs()),
            pace: Arc::default(),
            probing: Mutex::default(),
            probes: AtomicU64::default(),
        };
        let own = each!(served, queued => queued.model.model_name());
        served.name = name.unwrap_or_else(|| public_name(own)).into();
        served
    }

    /// A model that the server loaded as it was told.
    pub(crate) fn of(model: Model, spec: &ModelSpec) -> Self {
        Self {
            aliases: spec.aliases.clone(),
            ..Self::new(model, Some(spec.name()))
        }
    }

    /// Whether requests mean it by this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        *self.name == *name || self.aliases.iter().any(|alias| alias == name)
    }

    /// Says in the log that it is there.
    pub(crate) fn announce(&self) {
        tracing::info!(
            model = &*self.name,
            task = self.task_name(),
            provider = %self.provider(),
            fingerprint = self.fingerprint().id(),
            "the model is loaded"
        );
    }

    pub(crate) fn task(&self) -> ModelTask {
        match &self.queue {
            Queue::Embed(_) => ModelTask::Embed,
            Queue::Rerank(_) => ModelTask::Rerank,
            Queue::Classify(_) => ModelTask::Classify,
            Queue::Sparse(_) => ModelTask::Sparse,
            Queue::MultiVector(_) => ModelTask::MultiVector,
            #[cfg(feature = "image")]
            Queue::EmbedImages(_) => ModelTask::EmbedImages,
        }
    }

    /// The task in a word.
    pub(crate) fn task_name(&self) -> &'static str {
        match &self.queue {
            Queue::Embed(_) => "embed",
            Queue::Rerank(_) => "rerank",
            Queue::Classify(_) => "classify",
            Queue::Sparse(_) => "sparse",
            Queue::MultiVector(_) => "multi_vector",
            #[cfg(feature = "image")]
            Queue::EmbedImages(_) => "embed_images",
        }
    }

    /// The model as one that gives vectors.
    ///
    /// # Errors
    /// A model for another task.
    pub(crate) fn embedder(&self) -> Result<&Queued<Embedder>, Failure> {
        match &self.queue {
            Queue::Embed(queued) => Ok(queued),
            _ => Err(self.is_no("an embedding model")),
        }
    }

    /// The components of the vectors that it gives for a task.
    ///
    /// # Errors
    /// A model for another task.
    pub(crate) fn dimension(&self, task: ModelTask) -> Result<usize, Failure> {
        match task {
            #[cfg(feature = "image")]
            ModelTask::EmbedImages => Ok(self.images()?.model.dimension()),
            _ => Ok(self.embedder()?.model.dimension()),
        }
    }

    /// The model as one that ranks documents.
    ///
    /// # Errors
    /// A model for another task.
    pub(crate) fn reranker(&self) -> Result<&Queued<Reranker>, Failure> {
        match &self.queue {
            Queue::Rerank(queued) => Ok(queued),
            _ => Err(self.is_no("a reranker")),
        }
    }

    /// The model as one that gives labels.
    ///
    /// # Errors
    /// A model for another task.
    pub(crate) fn classifier(&self) -> Result<&Queued<Classifier>, Failure> {
        match &self.queue {
            Queue::Classify(queued) => Ok(queued),
            _ => Err(self.is_no("a classifier")),
        }
    }

    /// The model as one that gives weights of words.
    ///
    /// # Errors
    /// A model for another task.
    pub(crate) fn sparse(&self) -> Result<&Queued<SparseEmbedder>, Failure> {
        match &self.queue {
            Queue::Sparse(queued) => Ok(queued),
            _ => Err(self.is_no("a model of sparse vectors")),
        }
    }

    /// The model as one that gives a vector for each token.
    ///
    /// # Errors
    /// A model for another task.
    pub(crate) fn multi_vector(&self) -> Result<&Queued<MultiVectorEmbedder>, Failure> {
        match &self.queue {
            Queue::MultiVector(queued) => Ok(queued),
            _ => Err(self.is_no("a model of late interaction")),
        }
    }

    /// The model as one that gives vectors of pictures.
    ///
    /// # Errors
    /// A model for another task.
    #[cfg(feature = "image")]
    pub(crate) fn images(&self) -> Result<&Queued<ImageEmbedder>, Failure> {
        match &self.queue {
            Queue::EmbedImages(queued) => Ok(queued),
            _ => Err(self.is_no("a model of pictures")),
        }
    }

    /// That a route needs a model for another task.
    pub(crate) fn is_no(&self, wanted: &str) -> Failure {
        let is = match self.queue {
            Queue::Embed(_) => "an embedding model",
            Queue::Rerank(_) => "a reranker",
            Queue::Classify(_) => "a classifier",
            Queue::Sparse(_) => "a model of sparse vectors",
            Queue::MultiVector(_) => "a model of late interaction",
            #[cfg(feature = "image")]
            Queue::EmbedImages(_) => "a model of pictures",
        };
        let name = &self.name;
        let message = format!("this route needs {wanted}, and the model {name:?} is {is}");
        Failure::new(Kind::WrongTask, message).about("model")
    }

    pub(crate) fn provider(&self) -> &ProviderInfo {
        each!(self, queued => queued.model.provider())
    }

    pub(crate) fn fingerprint(&self) -> &Fingerprint {
        each!(self, queued => queued.model.fingerprint())
    }

    pub(crate) fn effective_config(&self) -> &EffectiveConfig {
        each!(self, queued => queued.model.effective_config())
    }

    pub(crate) fn max_length(&self) -> usize {
        each!(self, queued => queued.model.max_length())
    }

    /// The tokens of texts; without a name of a prompt behind the default one.
    pub(crate) fn tokenize(
        &self,
        texts: &[String],
        prompt: Option<String>,
        special_tokens: bool,
    ) -> isovec::Result<Vec<Vec<Token>>> {
        let prompt = prompt.map_or(Prompt::Default, Prompt::Named);
        each!(self, queued => queued.model.tokenize(texts, &prompt, special_tokens))
    }

    /// The texts of token ids.
    pub(crate) fn decode(
        &self,
        texts: &[Vec<u32>],
        special_tokens: bool,
    ) -> isovec::Result<Vec<String>> {
        each!(self, queued => queued.model.decode(texts, special_tokens))
    }

    pub(crate) fn stats(&self) -> Stats {
        each!(self, queued => queued.model.stats())
    }

    /// Bytes that it holds: weights, buffers of its engine, cached vectors.
    pub(crate) fn bytes(&self) -> u64 {
        let weights = each!(self, queued => queued.model.description().weights_bytes);
        let stats = self.stats();
        let buffers = stats.engine.memory_pool;
        let vectors = stats.embedding_cache.map_or(0, |cache| cache.bytes);
        weights + buffers.current_memory_bytes + buffers.lent_memory_bytes + vectors
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        each!(self, queued => queued.batcher.counts())
    }

    /// Tells everybody in the queue that it is over.
    pub(crate) async fn shut_down(&self) {
        each!(self, queued => queued.batcher.shutdown(Shutdown::Cancel)).await;
    }

    /// Whether a request that came now would be computed: one was just now, or a probe gets through the queue and the
    /// engine within `most`.
    pub(crate) async fn ready(&self, most: Duration) -> Result<(), Failure> {
        let probe = self.probe().instrument(trace::untraced());
        let probed = timeout(most, probe).await;
        probed.unwrap_or_else(|_| {
            Err(Failure::new(
                Kind::Unready,
                format!(
                    "no text came through the queue and the engine of {:?} in {most:?}",
                    self.name
                ),
            ))
        })
    }

    async fn probe(&self) -> Result<(), Failure> {
        let _turn = self.probing.lock().await;
        loop {
            if self
                .pace
                .since_computed()
                .is_some_and(|since| since < FRESH)
            {
                return Ok(());
            }
            // Never the same text, which a cache of vectors would answer for the engine.
            let probe = self.probes.fetch_add(1, Ordering::Relaxed);
            let text = format!("probe {probe}");
            let computed = match &self.queue {
                Queue::Embed(queued) => queued.batcher.embed([text]).await.map(drop),
                Queue::Rerank(queued) => queued.batcher.rank(text, ["a document"]).await.map(drop),
                Queue::Classify(queued) => queued.batcher.classify([text]).await.map(drop),
                Queue::Sparse(queued) => queued.batcher.embed([text]).await.map(drop),
                Queue::MultiVector(queued) => {
                    let options = MultiVectorOptions::default();
                    queued.batcher.embed_with([text], options).await.map(drop)
                }
                #[cfg(feature = "image")]
                Queue::EmbedImages(queued) => {
                    let embed = async { queued.batcher.embed([dot(probe)?]).await };
                    embed.await.map(drop)
                }
            };
            match computed {
                Ok(()) => {
                    self.pace.computed();
                    return Ok(());
                }
                // Full, and perhaps moving on.
                Err(isovec::Error::Overloaded { .. }) => sleep(AGAIN).await,
                Err(error) => {
                    let message = format!("the model {:?} computes nothing: {error}", self.name);
                    return Err(Failure::new(Kind::Unready, message));
                }
            }
        }
    }
}

/// A picture of one pixel, of another colour each time.
#[cfg(feature = "image")]
fn dot(probe: u64) -> isovec::Result<isovec::Picture> {
    use isovec::image::{Channels, Image};

    let [red, green, blue, ..] = probe.to_le_bytes();
    let image = Image::new(1, 1, Channels::Rgb, vec![red, green, blue]);
    image
        .map(Into::into)
        .map_err(|source| isovec::Error::Picture {
            picture: 0,
            source: source.into(),
        })
}

/// A model id as it is, and of a folder only its own name: clients have no business with the server's paths.
pub(crate) fn public_name(name: &str) -> String {
    let path = Path::new(name);
    let is_path = path.is_absolute() || name.starts_with('.') || path.is_dir();
    match path.file_name().filter(|_| is_path) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_by_its_own_name() {
        for (name, public) in [
            (
                "sentence-transformers/all-MiniLM-L6-v2",
                "sentence-transformers/all-MiniLM-L6-v2",
            ),
            ("./models/minilm", "minilm"),
            (env!("CARGO_MANIFEST_DIR"), "serve"),
        ] {
            assert_eq!(public_name(name), public);
        }
    }
}
