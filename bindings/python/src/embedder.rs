//! The class `Embedder`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::{Stream, StreamExt, stream};
use isovec::stream::StreamOptions;
use isovec::{BoxFuture, Cancel, ChunkOptions, DynamicBatcher, Embedded, EmbeddedChunks, blocking};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};

use crate::chunks;
use crate::embeddings::{Embeddings, hits};
use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::options::Form;
use crate::tasks::Call;
use crate::texts::{self, Text};
use crate::vectors;
use crate::{error, wait};

/// A loaded model that turns texts into vectors.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct Embedder {
    embedder: Owned<isovec::Embedder>,
    /// What joins the calls that asyncio waits for, from the first on.
    batcher: OnceLock<Owned<DynamicBatcher>>,
}

/// A result to wait for, and what cancels it.
type Pending<T> = (BoxFuture<'static, isovec::Result<T>>, Cancel);

impl Embedder {
    fn embed_texts(
        &self,
        py: Python<'_>,
        texts: &[Text],
        form: Form,
    ) -> PyResult<isovec::Embeddings> {
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = form.options(py)?;
        if wait::is_short(texts) {
            let embedder = blocking::Embedder::from(embedder.clone());
            return wait::here(py, || embedder.embed_with(texts, options));
        }
        wait::wait(py, &cancel, embedder.embed_with(texts, options))
    }

    fn rows<'py>(&self, texts: &Bound<'py, PyAny>, form: Form) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let set = self.embed_texts(py, &texts::read(texts)?, form)?;
        vectors::of_set(py, set)
    }

    fn row<'py>(&self, text: &Bound<'py, PyAny>, form: Form) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        let set = self.embed_texts(py, &[texts::one(text)?], form)?;
        Ok(vectors::row(py, set.into_vec())?.into_any())
    }

    fn coroutine<'py>(
        &self,
        py: Python<'py>,
        texts: &[Text],
        form: Form,
        finish: fn(Python<'_>, isovec::Embeddings) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = form.options(py)?;
        let batcher = self
            .batcher
            .get_or_init(|| Owned::new(DynamicBatcher::new(embedder)));
        let result = batcher.get(py)?.embed_with(texts, options);
        Call::coroutine(py, cancel, result, finish)
    }

    /// Embeds the chunks of texts.
    fn chunks(
        &self,
        py: Python<'_>,
        texts: &[Text],
        options: ChunkOptions,
        form: Form,
    ) -> PyResult<Pending<EmbeddedChunks>> {
        let (embed, cancel) = form.options(py)?;
        let embedder = self.embedder.get(py)?;
        Ok((embedder.embed_chunks_with(texts, options, embed), cancel))
    }

    /// Embeds texts of any length.
    fn long(
        &self,
        texts: &Bound<'_, PyAny>,
        options: ChunkOptions,
        combine: &str,
        form: Form,
    ) -> PyResult<Pending<isovec::Embeddings>> {
        let py = texts.py();
        let (embed, cancel) = form.options(py)?;
        let combine = chunks::combine(py, combine)?;
        let embedder = self.embedder.get(py)?;
        let result = embedder.embed_long_with(texts::read(texts)?, options, combine, embed);
        Ok((result, cancel))
    }
}

fn rows_of(py: Python<'_>, set: isovec::Embeddings) -> PyResult<Py<PyAny>> {
    Ok(vectors::of_set(py, set)?.unbind())
}

fn row_of(py: Python<'_>, set: isovec::Embeddings) -> PyResult<Py<PyAny>> {
    Ok(vectors::row(py, set.into_vec())?.into_any().unbind())
}

#[pymethods]
impl Embedder {
    /// Loads a model: an id of the hub, a folder, or a dict of files.
    #[new]
    #[pyo3(signature = (source, *, device=None, config=None, progress=None, **words))]
    fn new(
        source: &Bound<'_, PyAny>,
        device: Option<&str>,
        config: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
        words: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let py = source.py();
        let asked = Asked::read(source, device, config, progress, words)?;
        let config = asked.config.clone();
        let embedder = load!(py, isovec::Embedder, asked)?;
        let model = Model::new(Handle::Texts(embedder.clone()), source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            embedder: Owned::new(embedder),
            batcher: OnceLock::new(),
        }))
    }

    /// Components of a vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.embedder.dimension()
    }

    /// How the model means its vectors to be compared.
    #[getter]
    fn metric(&self) -> &'static str {
        crate::embeddings::word(self.embedder.metric())
    }

    /// The score of every pair of vectors by the model's own metric: float32 `[n, m]`; larger is more alike.
    fn similarity<'py>(
        &self,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(vectors::scores(a.py(), self.embedder.metric(), a, b)?.into_any())
    }

    /// Embeds texts: float32 `[n, dimension]`, in their order.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, dimension=None, normalize=None))]
    fn embed<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.rows(
            texts,
            Form {
                prompt,
                prefix,
                dimension,
                normalize,
            },
        )
    }

    /// The vector of one text: float32 `[dimension]`.
    #[pyo3(signature = (text, *, prompt=None, prefix=None, dimension=None, normalize=None))]
    fn embed_one<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.row(
            text,
            Form {
                prompt,
                prefix,
                dimension,
                normalize,
            },
        )
    }

    /// Embeds texts to search with, under the model's query prompt.
    #[pyo3(signature = (texts, *, dimension=None, normalize=None))]
    fn embed_queries<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.rows(texts, Form::under("query", dimension, normalize))
    }

    /// The vector of a text to search with, under the model's query prompt.
    #[pyo3(signature = (text, *, dimension=None, normalize=None))]
    fn embed_query<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.row(text, Form::under("query", dimension, normalize))
    }

    /// Embeds texts to search in, under the model's passage prompt.
    #[pyo3(signature = (texts, *, dimension=None, normalize=None))]
    fn embed_passages<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.rows(texts, Form::under("passage", dimension, normalize))
    }

    /// The vector of a text to search in, under the model's passage prompt.
    #[pyo3(signature = (text, *, dimension=None, normalize=None))]
    fn embed_passage<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.row(text, Form::under("passage", dimension, normalize))
    }

    /// As `embed`, with the fingerprint of the model: a set that can be saved and searched.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, dimension=None, normalize=None))]
    fn embeddings(
        &self,
        texts: &Bound<'_, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Embeddings> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        let set = self.embed_texts(py, &texts::read(texts)?, form)?;
        Ok(set.into())
    }

    /// Cuts a text into chunks that the model sees whole: where each begins and ends, so that `text[start:end]` is the chunk, and
    /// its tokens. `by` is `"tokens"`, `"sentences"` or `"markdown"`.
    #[pyo3(signature = (text, *, by="sentences", max_tokens=None, overlap=0, prompt=None, prefix=None))]
    fn chunk<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        by: &str,
        max_tokens: Option<usize>,
        overlap: usize,
        prompt: Option<String>,
        prefix: Option<String>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = text.py();
        let form = Form {
            prompt,
            prefix,
            ..Form::default()
        };
        let (embed, _) = form.options(py)?;
        let options = chunks::options(py, by, max_tokens, overlap)?;
        let embedder = self.embedder.get(py)?;
        let text = texts::one(text)?;
        let cut = wait::here(py, || embedder.chunk_with(&text, &options, &embed))?;
        chunks::of_text(py, &text, &cut)
    }

    /// Cuts texts into chunks and embeds these: a set with a vector for each chunk, and the places of the chunks.
    #[pyo3(signature = (
        texts, *, by="sentences", max_tokens=None, overlap=0, prompt=None, prefix=None, dimension=None, normalize=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are words in Python")]
    fn embed_chunks<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        by: &str,
        max_tokens: Option<usize>,
        overlap: usize,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        let options = chunks::options(py, by, max_tokens, overlap)?;
        let texts = texts::read(texts)?;
        let (result, cancel) = self.chunks(py, &texts, options, form)?;
        let found = wait::wait(py, &cancel, result)?;
        chunks::embedded(py, &texts, found)
    }

    /// As `embed_chunks`, for asyncio.
    #[pyo3(signature = (
        texts, *, by="sentences", max_tokens=None, overlap=0, prompt=None, prefix=None, dimension=None, normalize=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are words in Python")]
    fn aembed_chunks<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        by: &str,
        max_tokens: Option<usize>,
        overlap: usize,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        let options = chunks::options(py, by, max_tokens, overlap)?;
        let texts = texts::read(texts)?;
        let (result, cancel) = self.chunks(py, &texts, options, form)?;
        Call::coroutine(py, cancel, result, move |py, found| {
            Ok(chunks::embedded(py, &texts, found)?.unbind())
        })
    }

    /// Embeds texts of any length without truncating them: a set with one vector for each text, made of those of its chunks.
    /// `combine` is `"mean"`, which weights chunks by their tokens, or `"max"`.
    #[pyo3(signature = (
        texts, *, by="sentences", max_tokens=None, overlap=0, combine="mean", prompt=None, prefix=None, dimension=None,
        normalize=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are words in Python")]
    fn embed_long(
        &self,
        texts: &Bound<'_, PyAny>,
        by: &str,
        max_tokens: Option<usize>,
        overlap: usize,
        combine: &str,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Embeddings> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        let options = chunks::options(py, by, max_tokens, overlap)?;
        let (result, cancel) = self.long(texts, options, combine, form)?;
        Ok(wait::wait(py, &cancel, result)?.into())
    }

    /// As `embed_long`, for asyncio.
    #[pyo3(signature = (
        texts, *, by="sentences", max_tokens=None, overlap=0, combine="mean", prompt=None, prefix=None, dimension=None,
        normalize=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are words in Python")]
    fn aembed_long<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        by: &str,
        max_tokens: Option<usize>,
        overlap: usize,
        combine: &str,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        let options = chunks::options(py, by, max_tokens, overlap)?;
        let (result, cancel) = self.long(texts, options, combine, form)?;
        Call::coroutine(py, cancel, result, |py, set| {
            Ok(Py::new(py, Embeddings::from(set))?.into_any())
        })
    }

    /// Ranks texts by how well they answer a query, best first: their places and scores.
    #[pyo3(signature = (query, texts, k=None))]
    fn rank<'py>(
        &self,
        query: &Bound<'py, PyAny>,
        texts: &Bound<'py, PyAny>,
        k: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = query.py();
        let form = |prompt| Form::under(prompt, None, None);
        let query = self.embed_texts(py, &[texts::one(query)?], form("query"))?;
        let passages = self.embed_texts(py, &texts::read(texts)?, form("passage"))?;
        let k = k.unwrap_or(passages.len());
        let found = wait::here(py, || passages.search_one(&query, k))?;
        hits(py, &found)
    }

    /// As `embed`, for asyncio.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, dimension=None, normalize=None))]
    fn aembed<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        self.coroutine(texts.py(), &texts::read(texts)?, form, rows_of)
    }

    /// As `embed_query`, for asyncio.
    #[pyo3(signature = (text, *, dimension=None, normalize=None))]
    fn aembed_query<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let form = Form::under("query", dimension, normalize);
        self.coroutine(text.py(), &[texts::one(text)?], form, row_of)
    }

    /// As `embed_passages`, for asyncio.
    #[pyo3(signature = (texts, *, dimension=None, normalize=None))]
    fn aembed_passages<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let form = Form::under("passage", dimension, normalize);
        self.coroutine(texts.py(), &texts::read(texts)?, form, rows_of)
    }

    /// Embeds any number of texts in flat memory: an iterator of vectors, in the order of the texts. Texts are read as
    /// vectors are taken, a few thousand ahead at most. A text that fails raises in its place, and the next goes on.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, dimension=None, normalize=None))]
    fn embed_stream(
        &self,
        texts: &Bound<'_, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<EmbeddedTexts> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            dimension,
            normalize,
        };
        let (options, cancel) = form.options(py)?;
        let raised = Arc::default();
        let reader = Reader {
            texts: texts.try_iter()?.unbind(),
            at: 0,
            raised: Arc::clone(&raised),
        };
        let options = StreamOptions::default().with_embed(options);
        let vectors = self
            .embedder
            .get(py)?
            .try_embed_stream(stream::iter(reader), options);
        Ok(EmbeddedTexts {
            vectors: Owned::new(Mutex::new(Box::pin(vectors))),
            cancel,
            raised,
        })
    }
}

/// Why a stream has no vector in a place.
enum Stopped {
    Isovec(isovec::Error),
    Python(PyErr),
}

impl From<isovec::Error> for Stopped {
    fn from(error: isovec::Error) -> Self {
        Self::Isovec(error)
    }
}

type Vectors = Pin<Box<dyn Stream<Item = Result<Embedded, Stopped>> + Send>>;

/// What ends the whole stream at once, such as `KeyboardInterrupt` while texts are read.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// The vectors of `embed_stream`.
#[pyclass(frozen, module = "isovec._isovec")]
pub(crate) struct EmbeddedTexts {
    vectors: Owned<Mutex<Vectors>>,
    cancel: Cancel,
    raised: Raised,
}

#[pymethods]
impl EmbeddedTexts {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let vectors = self.vectors.get(py)?;
        let Ok(mut vectors) = vectors.try_lock() else {
            return Err(PyRuntimeError::new_err("another thread reads this stream"));
        };
        let next = wait::until(py, &self.cancel, vectors.next())?;
        let raised = self
            .raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(raised) = raised {
            return Err(raised);
        }
        match next {
            None => Ok(None),
            Some(Ok(embedded)) => Ok(Some(vectors::row(py, embedded.vector)?.into_any())),
            Some(Err(Stopped::Isovec(error))) => Err(error::of(py, &error)),
            Some(Err(Stopped::Python(error))) => Err(error),
        }
    }
}

/// Reads texts one by one, on the thread that waits for their vectors.
struct Reader {
    texts: Py<PyIterator>,
    at: usize,
    raised: Raised,
}

impl Iterator for Reader {
    type Item = Result<Text, Stopped>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = Python::attach(|py| {
            let text = self.texts.bind(py).clone().next()?;
            let text = text.and_then(|text| texts::one_of(&text, self.at));
            if let Err(error) = &text
                && !error.is_instance_of::<PyException>(py)
            {
                let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
                *raised = Some(error.clone_ref(py));
            }
            Some(text)
        })?;
        self.at += 1;
        Some(read.map_err(Stopped::Python))
    }
}
