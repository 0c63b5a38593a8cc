//! `similarity`: how alike two vectors are.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float32Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::scalar::ScalarValue;
use isovec::Similarity as Metric;

use crate::error::{Error, arguments, wrong_type};
use crate::space::{self, Space, name_of};
use crate::texts;
use crate::vectors::{Vectors, coerced};

const NAME: &str = "similarity";
const USAGE: &str = "similarity(vector, vector[, 'cosine' | 'dot' | 'euclidean' | 'manhattan'])";
const WANTED: &str = "a list of Float32";

/// `similarity(a, b[, metric])`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Similarity {
    signature: Signature,
}

impl Similarity {
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

/// A metric by its name.
fn metric(name: &str) -> Result<Metric, Error> {
    space::named(name).map_err(|_| arguments(NAME, USAGE, format!("there is no metric {name:?}")))
}

/// Refuses what cannot be compared.
fn planned(args: &ReturnFieldArgs<'_>) -> Result<(), Error> {
    let here = Space::of(NAME, &args.arg_fields[0])?;
    let there = Space::of(NAME, &args.arg_fields[1])?;
    if let (Some(here), Some(there)) = (&here, &there) {
        here.check(there)?;
    }
    if let (DataType::FixedSizeList(_, here), DataType::FixedSizeList(_, there)) = (
        args.arg_fields[0].data_type(),
        args.arg_fields[1].data_type(),
    ) && here != there
    {
        let problem = format!("the vectors have {here} and {there} components");
        return Err(arguments(NAME, USAGE, problem));
    }
    if let Some(name) = texts::literal(NAME, USAGE, args, 2)? {
        metric(name)?;
    }
    Ok(())
}

impl ScalarUDFImpl for Similarity {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, got: &[DataType]) -> Result<Vec<DataType>> {
        texts::check_count(NAME, USAGE, got.len(), 2, 3)?;
        let types = got.iter().enumerate().map(|(place, got)| match place {
            0 | 1 => coerced(got).ok_or_else(|| wrong_type(NAME, USAGE, place, WANTED, got)),
            _ => Ok(DataType::Utf8),
        });
        Ok(types.collect::<Result<_, Error>>()?)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float32)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        planned(&args)?;
        let nullable = args.arg_fields[..2].iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(NAME, DataType::Float32, nullable)))
    }

    /// Writes the model's metric into the call: an executor in another process has the metadata of no field.
    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if args.len() != 2 {
            return Ok(ExprSimplifyResult::Original(args));
        }
        for side in 0..2 {
            let (_, field) = args[side].to_field(info.schema())?;
            if let Some(space) = Space::of(NAME, &field)? {
                args.push(lit(name_of(space.metric)?));
                let written = ScalarUDF::from(Self::new()).call(args);
                return Ok(ExprSimplifyResult::Simplified(written));
            }
        }
        Ok(ExprSimplifyResult::Original(args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let metric = match args.args.get(2) {
            Some(ColumnarValue::Scalar(name)) => {
                metric(name.try_as_str().flatten().unwrap_or_default())?
            }
            _ => {
                let here = Space::of(NAME, &args.arg_fields[0])?;
                let there = || Space::of(NAME, &args.arg_fields[1]);
                let space = here.map_or_else(there, |here| Ok(Some(here)))?;
                space.map(|space| space.metric).unwrap_or_default()
            }
        };
        let (here, here_is_one) = lists(&args, 0)?;
        let (there, there_is_one) = lists(&args, 1)?;
        let one = here_is_one && there_is_one;
        let rows = if one { 1 } else { args.number_rows };
        let (here, there) = (
            Vectors::new(here, here_is_one)?,
            Vectors::new(there, there_is_one)?,
        );
        let score = |row| -> Result<Option<f32>, String> {
            let (Some(here), Some(there)) = (here.get(row)?, there.get(row)?) else {
                return Ok(None);
            };
            if here.len() != there.len() {
                let (here, there) = (here.len(), there.len());
                return Err(format!("the vectors have {here} and {there} components"));
            }
            Ok(Some(metric.score(here, there)))
        };
        let scores = (0..rows)
            .map(|row| score(row).map_err(|problem| Error::Vectors { row, rows, problem }));
        let scores: Float32Array = scores.collect::<Result<_, Error>>()?;
        Ok(match one {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&scores, 0)?),
            false => ColumnarValue::Array(Arc::new(scores)),
        })
    }
}

/// The lists of an argument, and whether one of them stands for all rows.
fn lists(args: &ScalarFunctionArgs, place: usize) -> Result<(ArrayRef, bool)> {
    Ok(match &args.args[place] {
        ColumnarValue::Array(lists) => (Arc::clone(lists), false),
        ColumnarValue::Scalar(list) => (list.to_array_of_size(1)?, true),
    })
}
