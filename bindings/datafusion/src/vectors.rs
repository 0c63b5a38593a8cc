//! Vectors out of arrays of lists.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type};
use datafusion::error::DataFusionError;

/// Lists of numbers, row by row.
pub(crate) struct Vectors {
    lists: ArrayRef,
    values: Float32Array,
    /// Whether the one row there is stands for all.
    same: bool,
}

/// The type in which a list of numbers is compared, `None` for what is no such list.
pub(crate) fn coerced(got: &DataType) -> Option<DataType> {
    let of_f32 = |item: &FieldRef| -> Option<FieldRef> {
        match item.data_type() {
            DataType::Float32 => Some(Arc::clone(item)),
            DataType::Float16 | DataType::Float64 => Some(Arc::new(
                Field::clone(item).with_data_type(DataType::Float32),
            )),
            _ => None,
        }
    };
    match got {
        DataType::FixedSizeList(item, dim) => Some(DataType::FixedSizeList(of_f32(item)?, *dim)),
        DataType::List(item) => Some(DataType::List(of_f32(item)?)),
        DataType::LargeList(item) => Some(DataType::LargeList(of_f32(item)?)),
        DataType::Null => Some(DataType::new_list(DataType::Float32, true)),
        _ => None,
    }
}

impl Vectors {
    /// Of lists of a type that [`coerced`] gives; `same` where one row stands for all.
    pub(crate) fn new(lists: ArrayRef, same: bool) -> Result<Self, DataFusionError> {
        let values = match lists.data_type() {
            DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
            DataType::List(_) => lists.as_list::<i32>().values(),
            DataType::LargeList(_) => lists.as_list::<i64>().values(),
            other => return Err(unplanned(other)),
        };
        let values = values
            .as_primitive_opt::<Float32Type>()
            .ok_or_else(|| unplanned(lists.data_type()))?
            .clone();
        Ok(Self {
            lists,
            values,
            same,
        })
    }

    /// The vector of a row; `None` for a null.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn get(&self, row: usize) -> Result<Option<&[f32]>, String> {
        let row = if self.same { 0 } else { row };
        if self.lists.is_null(row) {
            return Ok(None);
        }
        let (start, end) = match self.lists.data_type() {
            DataType::FixedSizeList(_, dim) => {
                let start = self.lists.as_fixed_size_list().value_offset(row);
                (i64::from(start), i64::from(start) + i64::from(*dim))
            }
            DataType::List(_) => {
                let ends = self.lists.as_list::<i32>().value_offsets();
                (i64::from(ends[row]), i64::from(ends[row + 1]))
            }
            _ => {
                let ends = self.lists.as_list::<i64>().value_offsets();
                (ends[row], ends[row + 1])
            }
        };
        // Arrow's offsets lie in the values.
        let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        if self.values.null_count() > 0
            && let Some(at) = range.clone().position(|at| self.values.is_null(at))
        {
            return Err(format!("component {at} of a vector is null"));
        }
        Ok(Some(&self.values.values()[range]))
    }
}

fn unplanned(got: &DataType) -> DataFusionError {
    DataFusionError::Internal(format!("a list of Float32 was planned, and {got} came"))
}
