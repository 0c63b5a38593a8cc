//! `embed`, `embed_query` and `embed_passage`: texts to vectors.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, Float32Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::AsyncScalarUDFImpl;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use isovec::{EmbedOptions, Embedder, Prompt};

use crate::calls;
use crate::distinct::Distinct;
use crate::models::{Models, Named};
use crate::texts;

/// With the model's default prompt.
pub(crate) const EMBED: &str = "embed";
/// With the prompt for texts to search with.
pub(crate) const EMBED_QUERY: &str = "embed_query";
/// With the prompt for texts to search in.
pub(crate) const EMBED_PASSAGE: &str = "embed_passage";

const USAGE: &str = "embed(text[, 'model']), and embed_query and embed_passage likewise";

/// One of the three.
#[derive(Debug)]
pub(crate) struct Embed {
    name: &'static str,
    prompt: Prompt,
    models: Arc<Models>,
    signature: Signature,
}

/// The same function of the same models.
impl PartialEq for Embed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.models, &other.models)
    }
}

impl Eq for Embed {}

impl Hash for Embed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Any arguments, which are checked when their fields are known: DataFusion asks an asynchronous function for no types of its
/// own. Volatile, so that no rule copies a call (`plan.rs`).
pub(crate) fn signature(counts: &[usize]) -> Signature {
    let any = counts.iter().map(|&count| TypeSignature::Any(count));
    Signature::one_of(any.collect(), Volatility::Volatile)
}

/// A vector's components, as in the files that isovec writes.
fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::Float32, false))
}

impl Embed {
    pub(crate) fn new(name: &'static str, prompt: Prompt, models: Arc<Models>) -> Self {
        Self {
            name,
            prompt,
            models,
            signature: signature(&[1, 2]),
        }
    }

    /// The vectors of rows.
    async fn vectors(
        &self,
        model: &Named<Embedder>,
        rows: Vec<Option<&str>>,
    ) -> Result<FixedSizeListArray> {
        let batch = Distinct::new(rows);
        let dim = model.model.dimension();
        let call = |texts: &[&str]| {
            let options = EmbedOptions::default().with_prompt(self.prompt.clone());
            model.batcher.embed_with(texts, options)
        };
        let vectors = match batch.items.is_empty() {
            true => Vec::new(),
            false => calls::compute(self.name, &model.gate, &batch, call)
                .await?
                .into_vec(),
        };
        let mut values = Vec::with_capacity(batch.of_row.len() * dim);
        for place in &batch.of_row {
            match place {
                Some(place) => values.extend_from_slice(&vectors[place * dim..][..dim]),
                None => values.resize(values.len() + dim, 0.0),
            }
        }
        let nulls: NullBuffer = batch.of_row.iter().map(Option::is_some).collect();
        Ok(FixedSizeListArray::try_new(
            item(),
            width(dim)?,
            Arc::new(Float32Array::from(values)),
            Some(nulls).filter(|nulls| nulls.null_count() > 0),
        )?)
    }
}

fn width(dim: usize) -> Result<i32> {
    i32::try_from(dim)
        .map_err(|_| DataFusionError::Plan(format!("{dim} components of a vector are too many")))
}

impl ScalarUDFImpl for Embed {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!(
            "the type of {} depends on the model",
            self.name
        )))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        texts::check_count(self.name, USAGE, args.arg_fields.len(), 1, 2)?;
        texts::check(self.name, USAGE, &args, 0)?;
        let name = texts::literal(self.name, USAGE, &args, 1)?;
        let model = self.models.embedder(self.name, name)?;
        let vectors = DataType::FixedSizeList(item(), width(model.model.dimension())?);
        let external = |error| DataFusionError::External(Box::new(error));
        let metadata = model.space().map_err(external)?.metadata()?;
        let nullable = args.arg_fields[0].is_nullable();
        Ok(Arc::new(
            Field::new(self.name, vectors, nullable).with_metadata(metadata),
        ))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!(
            "{} is asynchronous",
            self.name
        )))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Embed {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let model = self.models.embedder(self.name, model_name(&args, 1))?;
        let dim = width(model.model.dimension())?;
        let planned = args.return_type();
        if !matches!(planned, DataType::FixedSizeList(_, planned) if *planned == dim) {
            // Of two processes that registered different models.
            return Err(DataFusionError::Execution(format!(
                "{}: {planned} was planned, and the model {:?} gives vectors of {dim} components; register the same models in the same order everywhere",
                self.name, model.name
            )));
        }
        let texts = array(&args, 0)?;
        let vectors = self.vectors(model, texts::rows(&texts)?).await?;
        Ok(ColumnarValue::Array(Arc::new(vectors)))
    }
}

/// The name of the model in a call's arguments. Not from the metadata of its field, which is lost on the way to an executor.
pub(crate) fn model_name(args: &ScalarFunctionArgs, place: usize) -> Option<&str> {
    match args.args.get(place)? {
        ColumnarValue::Scalar(name) => name.try_as_str().flatten(),
        // Planning takes literals alone.
        ColumnarValue::Array(_) => None,
    }
}

/// An argument with a row for every row of the batch. Where a scalar came back in its place, DataFusion would take it for one row.
pub(crate) fn array(args: &ScalarFunctionArgs, place: usize) -> Result<ArrayRef> {
    args.args[place].to_array(args.number_rows)
}
