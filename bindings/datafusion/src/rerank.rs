//! `rerank`: how relevant texts are to a query.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::Float32Array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::AsyncScalarUDFImpl;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};

use crate::calls;
use crate::distinct::Distinct;
use crate::embed::{array, model_name, signature};
use crate::models::Models;
use crate::space::MODEL;
use crate::texts;

const NAME: &str = "rerank";
const USAGE: &str = "rerank(query, text[, 'model'])";

/// `rerank(query, text[, model])`.
#[derive(Debug)]
pub(crate) struct Rerank {
    models: Arc<Models>,
    signature: Signature,
}

impl PartialEq for Rerank {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.models, &other.models)
    }
}

impl Eq for Rerank {}

impl Hash for Rerank {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}

impl Rerank {
    pub(crate) fn new(models: Arc<Models>) -> Self {
        Self {
            models,
            signature: signature(&[2, 3]),
        }
    }
}

impl ScalarUDFImpl for Rerank {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float32)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        texts::check_count(NAME, USAGE, args.arg_fields.len(), 2, 3)?;
        texts::check(NAME, USAGE, &args, 0)?;
        texts::check(NAME, USAGE, &args, 1)?;
        let name = texts::literal(NAME, USAGE, &args, 2)?;
        let model = self.models.reranker(NAME, name)?;
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let metadata = [(MODEL.to_owned(), model.name.clone())];
        Ok(Arc::new(
            Field::new(NAME, DataType::Float32, nullable).with_metadata(metadata.into()),
        ))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{NAME} is asynchronous")))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Rerank {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let model = self.models.reranker(NAME, model_name(&args, 2))?;
        let (queries, documents) = (array(&args, 0)?, array(&args, 1)?);
        let pairs = texts::rows(&queries)?
            .into_iter()
            .zip(texts::rows(&documents)?);
        let batch = Distinct::new(pairs.map(|(query, document)| query.zip(document)));
        let call = |pairs: &[(&str, &str)]| model.batcher.score(pairs.iter().copied());
        let scores = match batch.items.is_empty() {
            true => Vec::new(),
            false => {
                calls::compute(NAME, &model.gate, &batch, call)
                    .await?
                    .scores
            }
        };
        let rows = batch.of_row.iter();
        let scores: Float32Array = rows.map(|place| place.map(|place| scores[place])).collect();
        Ok(ColumnarValue::Array(Arc::new(scores)))
    }
}
