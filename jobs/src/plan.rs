//! The units of an input.

use std::sync::Arc;

use crate::error::Result;
use crate::input::Input;
use crate::manifest::{Manifest, RowGroups};
use crate::parquet;
use crate::spec::Spec;
use crate::store::Store;
use crate::unit::{File, Kind, Part, Unit, UnitId};

/// All units, in the order of the input. JSON lines are not looked at. Of a Parquet file the footer is read, once for an output:
/// `manifest` remembers its row groups, if it may be written to.
pub(crate) fn units(
    input: &Input,
    spec: &Spec,
    manifest: Option<&Manifest>,
    write: bool,
) -> Result<Vec<Unit>> {
    let mut units = Vec::new();
    for file in &input.files {
        let parts = match file.kind {
            Kind::JsonLines => ranges(file.size, spec.unit_bytes.get()),
            Kind::Parquet => {
                let rows = row_groups(&input.store, file, manifest, write)?;
                groups(&rows, spec.unit_rows.get() as u64)
            }
        };
        units.extend(parts.into_iter().map(|part| Unit {
            file: Arc::clone(file),
            part,
        }));
    }
    Ok(units)
}

fn row_groups(
    store: &Store,
    file: &File,
    manifest: Option<&Manifest>,
    write: bool,
) -> Result<Vec<u64>> {
    let Some(manifest) = manifest else {
        return parquet::row_groups(store, file);
    };
    let id = UnitId::over(&[&file.name, &file.etag, &file.size.to_string()]);
    if let Some(noted) = manifest.row_groups(id)? {
        return Ok(noted.rows);
    }
    let rows = parquet::row_groups(store, file)?;
    let noted = RowGroups { rows };
    if write {
        manifest.note_row_groups(id, &noted)?;
    }
    Ok(noted.rows)
}

/// A file's bytes in ranges of `step`.
pub(crate) fn ranges(size: u64, step: u64) -> Vec<Part> {
    let starts = (0..size.div_ceil(step)).map(|number| number * step);
    let parts = starts.map(|start| Part::Bytes {
        start,
        end: size.min(start.saturating_add(step)),
    });
    parts.collect()
}

/// Row groups put together up to `most` rows. One that has more is alone.
pub(crate) fn groups(rows: &[u64], most: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut first = 0;
    let mut row = 0;
    let mut together = 0;
    for (at, &rows) in (0..).zip(rows) {
        if together > 0 && together + rows > most {
            parts.push(Part::Groups {
                first,
                end: at,
                row,
            });
            first = at;
            row += together;
            together = 0;
        }
        together += rows;
    }
    if together > 0 {
        let end = rows.len() as u32;
        parts.push(Part::Groups { first, end, row });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_a_file_without_a_gap() {
        let part = |start, end| Part::Bytes { start, end };
        assert_eq!(ranges(0, 4), []);
        assert_eq!(ranges(4, 4), [part(0, 4)]);
        assert_eq!(ranges(9, 4), [part(0, 4), part(4, 8), part(8, 9)]);
    }

    #[test]
    fn row_groups_are_put_together_up_to_a_number_of_rows() {
        let part = |first, end, row| Part::Groups { first, end, row };
        assert_eq!(groups(&[], 10), []);
        assert_eq!(groups(&[0, 0], 10), []);
        let parts = groups(&[4, 6, 1, 0, 30, 2, 3], 10);
        assert_eq!(
            parts,
            [
                part(0, 2, 0),
                part(2, 4, 10),
                part(4, 5, 11),
                part(5, 7, 41)
            ]
        );
    }
}
