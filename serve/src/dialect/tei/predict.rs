//! Labels of texts and of pairs of texts.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::future::try_join;
use isovec::{Classifications, ClassifyOptions, ModelTask, Scores};
use isovec_http::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::floats::answer;
use super::{Reading, characters, headers, reading};
use crate::app::App;
use crate::call::Call;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::route::Route;
use crate::schema::{
    boolean, either, given, list, model, needed, number, object, optional, some, text,
};
use crate::seen::{Counted, Seen};

pub(super) fn route() -> Route {
    let pair = || json!({"type": "array", "items": given(), "minItems": 1, "maxItems": 2});
    let inputs = either([given(), pair(), some(pair())]);
    let fields = [
        model(),
        needed("inputs", inputs),
        optional(
            "raw_scores",
            boolean("Whether scores are the model's own numbers."),
        ),
    ];
    let labels = list(object([needed("score", number()), needed("label", text())]));
    let summary = "Labels of a text, of a pair [text, text], or of a batch [[text], [text, text], ...], the best first.";
    Route::post("/predict", predict, summary)
        .takes(
            object(fields.into_iter().chain(reading())),
            json!({"inputs": [["a text"], ["a text", "another"]]}),
        )
        .gives(either([labels.clone(), list(labels)]))
}

#[derive(Debug, Deserialize)]
struct Predict {
    #[serde(default)]
    model: Option<String>,
    inputs: Inputs,
    #[serde(default)]
    raw_scores: Option<bool>,
    #[serde(flatten)]
    reading: Reading,
}

/// A label of a text.
#[derive(Serialize)]
struct Prediction {
    score: f32,
    label: String,
}

async fn predict(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = predicted(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn predicted(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Predict = call.read(request).await?;
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::Classify)?;
    let batcher = call.queue(served.classifier()?);
    asked.reading.check(&served)?;
    let (items, is_batch) = asked.inputs.checked()?;
    let characters = items.iter().map(characters).sum();
    let mut options = ClassifyOptions::default();
    if asked.raw_scores == Some(true) {
        options = options.with_scores(Scores::Logits);
    }
    let work = || {
        let texts = items.iter().filter(|item| item.len() == 1);
        let pairs = items.iter().filter(|item| item.len() == 2);
        let texts = batcher.classify_with(texts.map(|item| &item[0]), options.clone());
        let pairs = pairs.map(|item| (&item[0], &item[1]));
        let pairs = batcher.classify_pairs_with(pairs, options);
        async {
            let (texts, pairs) = try_join(texts, pairs).await?;
            let is_pair = items.iter().map(|item| item.len() == 2).collect();
            Ok(Said::new(texts, pairs, is_pair))
        }
    };
    let said = call.compute(&served, items.len(), work).await?;
    asked.reading.check_whole(call, &served)?;
    let headers = headers(call, &served, served.fingerprint().id(), characters);
    let size = said.texts.as_slice().len() + said.pairs.as_slice().len();
    answer(headers, size, move || {
        let rows = said.rows();
        match rows.first() {
            Some(row) if !is_batch => serde_json::to_vec(row),
            _ => serde_json::to_vec(&rows),
        }
    })
    .await
}

/// The labels of texts and of pairs, which are computed as two calls and are one list to the client.
struct Said {
    texts: Classifications,
    pairs: Classifications,
    /// Item by item: which of the two it is in, and its place there.
    places: Vec<(bool, usize)>,
}

impl Said {
    fn new(texts: Classifications, pairs: Classifications, is_pair: Vec<bool>) -> Self {
        let (mut text, mut pair) = (0..texts.len(), 0..pairs.len());
        let places = is_pair.into_iter().map_while(|is_pair| {
            let next = if is_pair { pair.next() } else { text.next() };
            Some((is_pair, next?))
        });
        Self {
            places: places.collect(),
            texts,
            pairs,
        }
    }

    fn of(&self, is_pair: bool) -> &Classifications {
        if is_pair { &self.pairs } else { &self.texts }
    }

    fn rows(&self) -> Vec<Vec<Prediction>> {
        let row = |&(is_pair, at): &(bool, usize)| {
            let labels = self.of(is_pair).ranked(at).unwrap_or_default();
            let row = labels.into_iter().map(|label| Prediction {
                score: label.score,
                label: label.label,
            });
            row.collect()
        };
        self.places.iter().map(row).collect()
    }
}

impl Counted for Said {
    fn seen(&self) -> Seen {
        let truncated = self.places.iter().enumerate();
        let truncated = truncated.filter(|(_, (is_pair, at))| self.of(*is_pair).truncated()[*at]);
        let (texts, pairs) = (self.texts.seen(), self.pairs.seen());
        Seen {
            texts: texts.texts + pairs.texts,
            tokens: texts.tokens + pairs.tokens,
            truncated: truncated.map(|(at, _)| at).collect(),
        }
    }
}
