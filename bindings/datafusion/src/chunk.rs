//! `chunk`: a text in parts that a model sees whole.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListBuilder, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::scalar::ScalarValue;
use isovec::ChunkOptions;

use crate::embed::{array, model_name};
use crate::error::{Error, arguments};
use crate::models::Models;
use crate::texts;

const NAME: &str = "chunk";
const USAGE: &str = "chunk(text[, max_tokens[, 'model']])";

/// `chunk(text[, max_tokens[, model]])`.
#[derive(Debug)]
pub(crate) struct Chunk {
    models: Arc<Models>,
    signature: Signature,
}

impl PartialEq for Chunk {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.models, &other.models)
    }
}

impl Eq for Chunk {}

impl Hash for Chunk {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}

impl Chunk {
    pub(crate) fn new(models: Arc<Models>) -> Self {
        let any = [1, 2, 3].map(TypeSignature::Any);
        Self {
            models,
            signature: Signature::one_of(any.into(), Volatility::Immutable),
        }
    }
}

/// The tokens of a chunk at most, where the query limits them.
fn tokens(value: Option<&ScalarValue>) -> Result<Option<usize>, Error> {
    let wrong = || {
        arguments(
            NAME,
            USAGE,
            "argument 2 is no positive number that the query itself has",
        )
    };
    let Some(value) = value else {
        return Err(wrong());
    };
    if value.is_null() {
        return Ok(None);
    }
    let tokens = match value.cast_to(&DataType::UInt64) {
        Ok(ScalarValue::UInt64(Some(tokens))) if value.data_type().is_integer() => tokens,
        _ => return Err(wrong()),
    };
    match usize::try_from(tokens) {
        Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
        _ => Err(wrong()),
    }
}

impl ScalarUDFImpl for Chunk {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(DataType::Utf8, true))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        texts::check_count(NAME, USAGE, args.arg_fields.len(), 1, 3)?;
        texts::check(NAME, USAGE, &args, 0)?;
        if let Some(&limit) = args.scalar_arguments.get(1) {
            tokens(limit)?;
        }
        let name = texts::literal(NAME, USAGE, &args, 2)?;
        self.models.embedder(NAME, name)?;
        let parts = DataType::new_list(DataType::Utf8, true);
        Ok(Arc::new(Field::new(
            NAME,
            parts,
            args.arg_fields[0].is_nullable(),
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let model = self.models.embedder(NAME, model_name(&args, 2))?;
        let mut options = ChunkOptions::default();
        if let Some(ColumnarValue::Scalar(limit)) = args.args.get(1)
            && let Some(tokens) = tokens(Some(limit))?
        {
            options = options.with_max_tokens(tokens);
        }
        let texts = array(&args, 0)?;
        let mut parts = ListBuilder::new(StringBuilder::new());
        for (row, text) in texts::rows(&texts)?.into_iter().enumerate() {
            if let Some(text) = text {
                let cut = model
                    .model
                    .chunk(text, &options)
                    .map_err(|source| Error::Row {
                        function: NAME,
                        row,
                        rows: args.number_rows,
                        text: texts::excerpt(text),
                        source: Box::new(source),
                    })?;
                for part in cut {
                    parts.values().append_option(text.get(part.range));
                }
            }
            parts.append(text.is_some());
        }
        let parts: ArrayRef = Arc::new(parts.finish());
        // Of literals alone, DataFusion evaluates one row while it plans.
        if args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)))
        {
            return match args.number_rows {
                0 => Err(DataFusionError::Internal("no row of literals".into())),
                _ => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                    &parts, 0,
                )?)),
            };
        }
        Ok(ColumnarValue::Array(parts))
    }
}
