//! Bags of embeddings: rows of a table are added up as they are looked up, so that no token's own vector is ever written.

use crate::dequantize::f16;
use crate::embed::{Table, TableValues};
use crate::error::KernelError;
use crate::simd::multiversion;

/// Columns that are added up at a time: few enough to stay in registers.
const COLUMNS: usize = 32;

/// The sum of a table's rows at `ids`, `[width]`, each times its factor where there are factors. Rows are added in the order
/// of their ids, each column by itself; without ids the sum is 0.
///
/// # Errors
/// [`KernelError::Id`] when an id is not in the table.
///
/// # Panics
/// When `out` is not as wide as the table, or there is not one factor for every id.
pub fn sum_rows(
    table: Table<'_>,
    ids: &[i64],
    factors: Option<&[f32]>,
    out: &mut [f32],
) -> Result<(), KernelError> {
    assert!(
        out.len() == table.width && factors.is_none_or(|factors| factors.len() == ids.len()),
        "{} values of a table of {} columns, {:?} factors of {} ids",
        out.len(),
        table.width,
        factors.map(<[f32]>::len),
        ids.len()
    );
    let rows = table.rows();
    let in_table = |id: &i64| usize::try_from(*id).is_ok_and(|id| id < rows);
    if let Some(token) = ids.iter().position(|id| !in_table(id)) {
        return Err(KernelError::Id {
            lookup: 0,
            token,
            id: ids[token],
            rows,
        });
    }
    sum(table, ids, factors, out);
    Ok(())
}

multiversion! {
    fn sum(table: Table<'_>, ids: &[i64], factors: Option<&[f32]>, out: &mut [f32]) {
        match (table.values, factors) {
            (TableValues::F32(values), None) => columns(values, ids, out, |value, _, _| value),
            (TableValues::F32(values), Some(factors)) => {
                columns(values, ids, out, |value, _, at| value * factors[at]);
            }
            (TableValues::F16(values), None) => columns(values, ids, out, |value, _, _| f16(value)),
            (TableValues::F16(values), Some(factors)) => {
                columns(values, ids, out, |value, _, at| f16(value) * factors[at]);
            }
            (TableValues::I8 { values, scales }, None) => {
                columns(values, ids, out, |value, row, _| f32::from(value) * scales[row]);
            }
            (TableValues::I8 { values, scales }, Some(factors)) => {
                columns(values, ids, out, |value, row, at| {
                    f32::from(value) * scales[row] * factors[at]
                });
            }
        }
    }
}

/// Adds up the rows at `ids`, some columns at a time. `number` is given a value, its row, and the row's place among the ids.
#[inline(always)]
fn columns<T: Copy>(
    values: &[T],
    ids: &[i64],
    out: &mut [f32],
    number: impl Fn(T, usize, usize) -> f32,
) {
    let width = out.len();
    let (tiles, rest) = out.as_chunks_mut::<COLUMNS>();
    let whole = tiles.len() * COLUMNS;
    for (tile, out) in tiles.iter_mut().enumerate() {
        let mut sums = [0.0; COLUMNS];
        for (at, &id) in ids.iter().enumerate() {
            let row = id as usize;
            let part = &values[row * width + tile * COLUMNS..][..COLUMNS];
            for (sum, value) in sums.iter_mut().zip(part) {
                *sum += number(*value, row, at);
            }
        }
        *out = sums;
    }
    rest.fill(0.0);
    for (at, &id) in ids.iter().enumerate() {
        let row = id as usize;
        let part = &values[row * width + whole..][..rest.len()];
        for (sum, value) in rest.iter_mut().zip(part) {
            *sum += number(*value, row, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::{Index, Lookup, embed};

    const ROWS: usize = 19;

    /// Numbers of both signs and many sizes.
    fn number(at: usize) -> f32 {
        let x = (at as u32).wrapping_mul(2_654_435_761) >> 7;
        (x as f32 / (1 << 24) as f32 - 1.0) * [1.0, 1e-3, 40.0][at % 3]
    }

    fn sums(table: Table<'_>, ids: &[i64], factors: Option<&[f32]>, width: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; width];
        sum_rows(table, ids, factors, &mut out).unwrap();
        out
    }

    /// Rows that are looked up first and added up then.
    fn rows_added_up(
        table: Table<'_>,
        ids: &[i64],
        factors: Option<&[f32]>,
        width: usize,
    ) -> Vec<f32> {
        let mut rows = vec![0.0; ids.len() * width];
        let index = Index::Ids(ids);
        embed(
            &[Lookup { table, index }],
            &[0, ids.len()],
            0..ids.len(),
            None,
            &mut rows,
        )
        .unwrap();
        let mut sums = vec![0.0; width];
        for (at, row) in rows.chunks_exact(width).enumerate() {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value * factors.map_or(1.0, |factors| factors[at]);
            }
        }
        sums
    }

    #[test]
    fn sums_have_the_bits_of_rows_that_are_added_up_in_order() {
        for width in [1, 7, 31, 32, 33, 96, 100] {
            let floats: Vec<f32> = (0..ROWS * width).map(number).collect();
            let halves: Vec<u16> = floats
                .iter()
                .map(|&x| half::f16::from_f32(x).to_bits())
                .collect();
            let bytes: Vec<i8> = (0..ROWS * width).map(|at| (at * 37) as i8).collect();
            let scales: Vec<f32> = (0..ROWS).map(|row| number(row).abs()).collect();
            let tables = [
                TableValues::F32(&floats),
                TableValues::F16(&halves),
                TableValues::I8 {
                    values: &bytes,
                    scales: &scales,
                },
            ];
            for values in tables {
                let table = Table::new(values, width);
                for count in [0, 1, 2, 50] {
                    let ids: Vec<i64> = (0..count).map(|at| (at * 7 % ROWS) as i64).collect();
                    let factors: Vec<f32> = (0..count).map(|at| number(at + 5)).collect();
                    for factors in [None, Some(&factors[..])] {
                        let expected = rows_added_up(table, &ids, factors, width);
                        let found = sums(table, &ids, factors, width);
                        assert_eq!(found, expected, "{width} columns, {count} ids");
                    }
                }
            }
        }
    }

    #[test]
    fn an_id_outside_the_table_is_named() {
        let table = Table::new(TableValues::F32(&[1.0, 2.0]), 1);
        for id in [2, -1, i64::MAX] {
            let error = sum_rows(table, &[1, id], None, &mut [0.0]).unwrap_err();
            let expected = KernelError::Id {
                lookup: 0,
                token: 1,
                id,
                rows: 2,
            };
            assert_eq!(error, expected);
        }
    }
}
