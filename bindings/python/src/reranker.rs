//! The class `Reranker`.

use std::sync::OnceLock;

use isovec::{Cancel, DynamicBatcher, RankOptions, Ranked, ScoreOptions};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::tasks::Call;
use crate::{error, options, texts, vectors, wait};

/// A loaded model that ranks documents by their relevance to a query.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct Reranker {
    reranker: Owned<isovec::Reranker>,
    /// What joins the calls that asyncio waits for, from the first on.
    batcher: OnceLock<Owned<DynamicBatcher<isovec::Reranker>>>,
}

impl Reranker {
    fn batcher(&self, py: Python<'_>) -> PyResult<&DynamicBatcher<isovec::Reranker>> {
        let reranker = self.reranker.get(py)?;
        let batcher = self.batcher.get_or_init(|| Owned::new(reranker.batcher()));
        batcher.get(py)
    }
}

/// How a call asks for scores.
#[derive(Default)]
struct Wanted<'a> {
    scores: Option<&'a str>,
    prompt: Option<String>,
    instruction: Option<String>,
}

fn options(py: Python<'_>, wanted: Wanted<'_>, cancel: &Cancel) -> PyResult<ScoreOptions> {
    let Wanted {
        scores,
        prompt,
        instruction,
    } = wanted;
    let mut options = ScoreOptions::default().with_cancel(cancel.clone());
    options.prompt = options::prompt(py, prompt, instruction, "instruction")?;
    options.scores = match scores {
        None => None,
        Some("sigmoid") => Some(isovec::Scores::Sigmoid),
        Some("logits") => Some(isovec::Scores::Logits),
        Some(other) => {
            let why =
                format!("there are no scores {other:?}; there are \"sigmoid\" and \"logits\"");
            return Err(error::with_kind(py, "Config", &why));
        }
    };
    Ok(options)
}

fn rank_options(
    py: Python<'_>,
    top_n: Option<usize>,
    wanted: Wanted<'_>,
    cancel: &Cancel,
) -> PyResult<RankOptions> {
    let mut rank = RankOptions::default();
    rank.top_n = top_n;
    rank.score = options(py, wanted, cancel)?;
    Ok(rank)
}

/// The documents in the order of their relevance.
fn found<'py>(py: Python<'py>, ranked: &[Ranked]) -> PyResult<Bound<'py, PyList>> {
    static RANKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let row = RANKED.import(py, "isovec._results", "Ranked")?;
    let all: PyResult<Vec<_>> = ranked
        .iter()
        .map(|document| row.call1((document.index, document.score)))
        .collect();
    PyList::new(py, all?)
}

#[pymethods]
impl Reranker {
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
        let reranker = load!(py, isovec::Reranker, asked)?;
        let model = Model::new(Handle::Relevance(reranker.clone()), source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            reranker: Owned::new(reranker),
            batcher: OnceLock::new(),
        }))
    }

    /// Ranks documents by their relevance to a query: their places and scores, the best first.
    #[pyo3(signature = (query, documents, top_n=None, *, scores=None, prompt=None, instruction=None))]
    fn rank<'py>(
        &self,
        query: &Bound<'py, PyAny>,
        documents: &Bound<'py, PyAny>,
        top_n: Option<usize>,
        scores: Option<&str>,
        prompt: Option<String>,
        instruction: Option<String>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = documents.py();
        let reranker = self.reranker.get(py)?;
        let cancel = Cancel::new();
        let wanted = Wanted {
            scores,
            prompt,
            instruction,
        };
        let options = rank_options(py, top_n, wanted, &cancel)?;
        let (query, documents) = (texts::one(query)?, texts::read(documents)?);
        let ranked = wait::wait(py, &cancel, reranker.rank_with(query, documents, options))?;
        found(py, &ranked)
    }

    /// As `rank`, for asyncio.
    #[pyo3(signature = (query, documents, top_n=None, *, scores=None, prompt=None, instruction=None))]
    fn arank<'py>(
        &self,
        query: &Bound<'py, PyAny>,
        documents: &Bound<'py, PyAny>,
        top_n: Option<usize>,
        scores: Option<&str>,
        prompt: Option<String>,
        instruction: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = documents.py();
        let cancel = Cancel::new();
        let wanted = Wanted {
            scores,
            prompt,
            instruction,
        };
        let options = rank_options(py, top_n, wanted, &cancel)?;
        let (query, documents) = (texts::one(query)?, texts::read(documents)?);
        let result = self.batcher(py)?.rank_with(query, documents, options);
        Call::coroutine(py, cancel, result, |py, ranked| {
            Ok(found(py, &ranked)?.into_any().unbind())
        })
    }

    /// The relevance of the second text of each pair to the first: float32 `[n]`, in the order of the pairs.
    #[pyo3(signature = (pairs, *, scores=None, prompt=None, instruction=None))]
    fn score<'py>(
        &self,
        pairs: &Bound<'py, PyAny>,
        scores: Option<&str>,
        prompt: Option<String>,
        instruction: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = pairs.py();
        let reranker = self.reranker.get(py)?;
        let cancel = Cancel::new();
        let wanted = Wanted {
            scores,
            prompt,
            instruction,
        };
        let options = options(py, wanted, &cancel)?;
        let scored = reranker.score_with(texts::pairs(pairs)?, options);
        let scored = wait::wait(py, &cancel, scored)?;
        Ok(vectors::row(py, scored.scores)?.into_any())
    }

    /// As `score`, for asyncio.
    #[pyo3(signature = (pairs, *, scores=None, prompt=None, instruction=None))]
    fn ascore<'py>(
        &self,
        pairs: &Bound<'py, PyAny>,
        scores: Option<&str>,
        prompt: Option<String>,
        instruction: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = pairs.py();
        let cancel = Cancel::new();
        let wanted = Wanted {
            scores,
            prompt,
            instruction,
        };
        let options = options(py, wanted, &cancel)?;
        let result = self.batcher(py)?.score_with(texts::pairs(pairs)?, options);
        Call::coroutine(py, cancel, result, |py, scored| {
            Ok(vectors::row(py, scored.scores)?.into_any().unbind())
        })
    }
}
