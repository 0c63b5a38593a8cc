//! The files of the input, and their readers.

use std::sync::Arc;

use globset::GlobBuilder;
use object_store::ObjectMeta;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::jsonl::JsonLines;
use crate::parquet::Groups;
use crate::rows::{Columns, Reader};
use crate::spec::Spec;
use crate::store::Store;
use crate::unit::{File, Kind, Part, Unit};
use crate::url;

/// The store of the input, and its files in the order of their names.
pub(crate) struct Input {
    pub(crate) store: Store,
    pub(crate) files: Vec<Arc<File>>,
}

impl Input {
    /// Lists the files that a pattern names. Reads none of them.
    ///
    /// # Errors
    /// [`Error::Place`] where there is none. [`Error::Input`] where one has an ending that no reader knows.
    pub(crate) fn list(pattern: &str, context: &Context) -> Result<Self> {
        let fault = |detail: String| Error::Place {
            url: pattern.to_owned(),
            detail,
        };
        let (folder, names) = url::split(pattern);
        let store = Store::open(folder, context)?;
        let mut found = Vec::new();
        if !url::is_pattern(names) {
            found.extend(store.find(&store.at(names))?);
        } else {
            let glob = GlobBuilder::new(names).literal_separator(true).build();
            let glob = glob
                .map_err(|error| fault(error.to_string()))?
                .compile_matcher();
            let root = store.at("");
            let deep = names.contains('/') || names.contains("**");
            found = store.list(&root, deep)?;
            found.retain(|object| {
                let inside = object.location.prefix_match(&root);
                let inside: Option<object_store::path::Path> = inside.map(|parts| parts.collect());
                inside.is_some_and(|inside| glob.is_match(inside.as_ref()))
            });
        }
        if found.is_empty() {
            return Err(fault(
                "there is no such file; name files, or write folder/*.parquet or folder/**/*.jsonl"
                    .into(),
            ));
        }
        found.sort_by(|a, b| a.location.cmp(&b.location));
        let files = found.into_iter().map(|object| file(&store, object));
        let files = files.collect::<Result<_>>()?;
        Ok(Self { store, files })
    }

    /// Reads the rows of a unit in chunks of `most` rows or fewer.
    pub(crate) fn reader<'a>(
        &'a self,
        unit: &'a Unit,
        spec: &'a Spec,
        most: usize,
    ) -> Result<Box<dyn Reader + 'a>> {
        let (store, file) = (&self.store, &*unit.file);
        let columns = Columns {
            text: &spec.text,
            keep: &spec.keep,
            max_text_bytes: spec.max_text_bytes.get(),
            rows: most.min(spec.unit_rows.get()),
        };
        Ok(match unit.part {
            Part::Bytes { start, end } => {
                Box::new(JsonLines::open(store, file, (start, end), columns)?)
            }
            Part::Groups { first, end, row } => {
                Box::new(Groups::open(store, file, first..end, row, columns)?)
            }
        })
    }
}

fn file(store: &Store, object: ObjectMeta) -> Result<Arc<File>> {
    let name = store.shown(&object.location);
    let Some(kind) = Kind::of(&name) else {
        return Err(Error::Input {
            file: name,
            detail: "its ending is none of .jsonl, .ndjson and .parquet; name only files of these"
                .into(),
        });
    };
    // A store without etags says when an object was written.
    let etag = object
        .e_tag
        .unwrap_or_else(|| object.last_modified.timestamp_micros().to_string());
    Ok(Arc::new(File {
        at: object.location,
        name,
        etag,
        size: object.size,
        kind,
    }))
}
