//! The ways of a `Router`: documents are computed, and the weights of a query's words stand in a table.
//!
//! Formats: `Router` and `SparseStaticEmbedding` of sentence-transformers (`base/modules/router.py`,
//! `sparse_encoder/modules/sparse_static_embedding.py`). The table is the tensor `weight` of the step's `model.safetensors`, a weight
//! for each token id, or the file that the step's `config.json` names as its `path`: JSON, a weight for each token.

use isovec_engine::EngineError;
use isovec_model::bundle::{
    DOCUMENT, QUERY, ROUTER, ROUTER_CONFIG, RouteStep, Routes, SPARSE_STATIC,
};
use serde_json::Value;

use super::{Folder, Module, Result, floats, join};

/// The tensor of a table.
const WEIGHT: &str = "weight";

/// The weights of a query's words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryWordFiles {
    /// The folder of the tokenizer of queries; empty for the root.
    pub(crate) folder: String,
    pub(crate) weights: TokenWeights,
    /// Whether a text of which nobody says what it is counts as a query.
    pub(crate) by_default: bool,
}

/// A weight for each token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenWeights {
    /// By the token's id.
    ById(Vec<f32>),
    /// By the token; others have none.
    ByToken(Vec<(String, f32)>),
}

impl Folder<'_> {
    /// The steps of documents, and the table of queries, where the model begins with a `Router`. Others are as they are.
    pub(super) fn documents(
        &self,
        mut modules: Vec<Module>,
    ) -> Result<(Vec<Module>, Option<QueryWordFiles>)> {
        let Some(router) = modules
            .first()
            .filter(|first| first.class() == Some(ROUTER))
        else {
            return Ok((modules, None));
        };
        let (root, file) = (router.path.clone(), join(&router.path, ROUTER_CONFIG));
        let hint = "The Router in modules.json needs it; take all of the model's files";
        let routes = self.present(&file, hint)?;
        let routes = Routes::read(routes).map_err(|detail| self.invalid(&file, detail))?;
        let (Some(documents), Some(queries)) = (routes.steps(DOCUMENT), routes.steps(QUERY)) else {
            let ways = routes.names();
            return Err(self.unsupported(
                format!("{file} has the ways {}", ways.join(", ")),
                "isovec knows a Router with the ways query and document",
            ));
        };
        let step = |step: &RouteStep<'_>| Module {
            path: join(&root, step.folder),
            r#type: step.class.to_owned(),
        };
        let of_queries: Vec<Module> = queries.iter().map(step).collect();
        let query_words = match &of_queries[..] {
            _ if queries == documents => None,
            [table] if table.class() == Some(SPARSE_STATIC) => Some(QueryWordFiles {
                folder: table.path.clone(),
                weights: self.token_weights(&table.path)?,
                by_default: routes.default_way() == Some(QUERY),
            }),
            steps => {
                let classes: Vec<&str> = steps.iter().map(|step| &*step.r#type).collect();
                return Err(self.unsupported(
                    format!("its queries go a way of their own ({})", classes.join(", ")),
                    "isovec has a SparseStaticEmbedding, and nothing else, for queries alone",
                ));
            }
        };
        modules.splice(..1, documents.iter().map(step));
        Ok((modules, query_words))
    }

    /// The table of a `SparseStaticEmbedding`.
    fn token_weights(&self, path: &str) -> Result<TokenWeights> {
        let config: Value = self.json_in(path, "config.json")?.unwrap_or_default();
        let named = config["path"].as_str();
        if let Some(named) = named.filter(|named| named.ends_with(".json")) {
            let inside = join(path, named);
            let file = match self.files.contains_key(&inside) {
                true => inside,
                false => named.to_owned(),
            };
            let Value::Object(table) = self.required("", &file)? else {
                return Err(self.invalid(&file, "it is no table of tokens"));
            };
            let weight = |(token, weight): (String, Value)| {
                let weight = weight.as_f64().unwrap_or(f64::NAN) as f32;
                (token, weight)
            };
            return Ok(TokenWeights::ByToken(
                table.into_iter().map(weight).collect(),
            ));
        }
        let hint = "It has the weights of a query's words; take all of the model's files";
        let (origin, tensors) = self.tensors(path, hint)?;
        let shape = tensors.get(WEIGHT).map(|tensor| tensor.shape.clone());
        match shape.as_deref() {
            Some([words]) => floats(&origin, &tensors, WEIGHT, &[*words]).map(TokenWeights::ById),
            Some(shape) => {
                let detail = format!("{WEIGHT} is {shape:?}, and a table has one dimension");
                Err(EngineError::invalid_model(origin, detail))
            }
            None => Err(EngineError::invalid_model(
                origin,
                format!("it has no {WEIGHT}"),
            )),
        }
    }
}
