//! The bookkeeping of an output: its settings, what is finished, what failed.
//!
//! Every object is named below the output's folder:
//!
//! | object | holds |
//! |---|---|
//! | `job.json` | the settings that all units share |
//! | `rows/ID.parquet`, `rows/ID-1.parquet`, … | the output of a unit |
//! | `skipped/ID.jsonl` | its rows without a vector, where the spec leaves them out |
//! | `manifest/ID.json` | that the unit is finished: created last |
//! | `failed/ID.json` | why the unit failed, until it is finished |
//! | `plan/ID.json` | the row groups of a file, so that another run need not read its footer |
//! | `writing/…` | on a disk: what is being written, until it is whole and gets its name |

use std::collections::HashSet;

use bytes::Bytes;
use object_store::path::Path;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::spec::{Poisoned, Spec};
use crate::store::{Created, Store};
use crate::unit::{Part, Unit, UnitId};

/// The version of the layout.
const VERSION: u32 = 1;

/// What decides the bytes of every unit's output, but for the input. An output has one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    version: u32,
    fingerprint: Value,
    text: String,
    keep: Vec<String>,
    poisoned: Poisoned,
    max_text_bytes: u64,
    unit_rows: u64,
    unit_bytes: u64,
}

impl Settings {
    pub(crate) fn new(spec: &Spec, fingerprint: Value) -> Self {
        Self {
            version: VERSION,
            fingerprint,
            text: spec.text.clone(),
            keep: spec.keep.clone(),
            poisoned: spec.poisoned,
            max_text_bytes: spec.max_text_bytes.get(),
            unit_rows: spec.unit_rows.get() as u64,
            unit_bytes: spec.unit_bytes.get(),
        }
    }

    /// The same for the fingerprint of another.
    pub(crate) fn with_fingerprint_of(self, other: &Self) -> Self {
        Self {
            fingerprint: other.fingerprint.clone(),
            ..self
        }
    }

    /// One text for equal settings, for the hash of a unit.
    pub(crate) fn text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Spec(error.to_string()))
    }

    /// Every setting that differs, with both values.
    fn differences(&self, there: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let value = |settings: &Self| serde_json::to_value(settings).unwrap_or(Value::Null);
        differences("", &value(self), &value(there), &mut found);
        found
    }
}

/// The paths at which two values differ.
fn differences(path: &str, here: &Value, there: &Value, found: &mut Vec<String>) {
    if let (Value::Object(here), Value::Object(there)) = (here, there) {
        let names: std::collections::BTreeSet<&String> = here.keys().chain(there.keys()).collect();
        for name in names {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            let of = |object: &Map<String, Value>| object.get(name).cloned().unwrap_or(Value::Null);
            differences(&path, &of(here), &of(there), found);
        }
    } else if here != there {
        found.push(format!("{path} is {there} there and {here} here"));
    }
}

/// That a unit is finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The unit's file, and what its content was known by.
    pub(crate) file: String,
    pub(crate) etag: String,
    pub(crate) part: Part,
    /// Rows of the input.
    pub(crate) rows: u64,
    /// Rows among them without a vector.
    pub(crate) poisoned: u64,
    /// Files of output.
    pub(crate) files: u32,
    /// The run that finished it. Tells an entry of one's own from another's, when a store failed after it had stored it.
    pub(crate) by: String,
}

impl Entry {
    /// The names of a unit's files of output.
    pub(crate) fn outputs(&self, id: UnitId) -> impl Iterator<Item = String> + use<> {
        (0..self.files).map(move |file| rows_name(id, file))
    }
}

/// Why a unit failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) of: String,
    pub(crate) reason: String,
}

/// The row groups of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowGroups {
    pub(crate) rows: Vec<u64>,
}

/// An output.
pub(crate) struct Manifest {
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    /// The settings as units' ids have them.
    text: String,
}

impl Manifest {
    /// Opens an output, and begins one where there is none.
    ///
    /// # Errors
    /// [`Error::OtherJob`] where it was begun otherwise.
    pub(crate) fn open(url: &str, settings: Settings, context: &Context) -> Result<Self> {
        let manifest = Self::of(Store::create_folder(url, context)?, settings)?;
        let at = manifest.store.at("job.json");
        if manifest.store.create(&at, json(&manifest.settings)?)? == Created::Before {
            let there = manifest.read::<Settings>(&at)?;
            manifest.same(there.as_ref())?;
        }
        Ok(manifest)
    }

    /// Opens an output to look at it. It has the fingerprint that it was begun with. Nothing where none was begun.
    pub(crate) fn look(url: &str, settings: Settings, context: &Context) -> Result<Option<Self>> {
        let store = match Store::open(url, context) {
            Ok(store) => store,
            Err(Error::Place { .. }) if !url.contains("://") => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut manifest = Self::of(store, settings)?;
        let Some(there) = manifest.read::<Settings>(&manifest.store.at("job.json"))? else {
            return Ok(None);
        };
        let Self {
            store, settings, ..
        } = manifest;
        manifest = Self::of(store, settings.with_fingerprint_of(&there))?;
        manifest.same(Some(&there))?;
        Ok(Some(manifest))
    }

    fn of(store: Store, settings: Settings) -> Result<Self> {
        Ok(Self {
            text: settings.text()?,
            store,
            settings,
        })
    }

    fn same(&self, there: Option<&Settings>) -> Result<()> {
        match there {
            Some(there) if *there != self.settings => Err(Error::OtherJob {
                output: self.store.name().to_owned(),
                differences: self.settings.differences(there),
            }),
            _ => Ok(()),
        }
    }

    /// The name of a unit in this output.
    pub(crate) fn id(&self, unit: &Unit) -> UnitId {
        unit.id(&self.text)
    }

    /// The place of a file of a unit's output.
    pub(crate) fn rows_at(&self, id: UnitId, file: u32) -> Path {
        self.store.at(&rows_name(id, file))
    }

    /// The place of a unit's side file.
    pub(crate) fn skipped_at(&self, id: UnitId) -> Path {
        self.store.at(&format!("skipped/{id}.jsonl"))
    }

    fn entry_at(&self, id: UnitId) -> Path {
        self.store.at(&format!("manifest/{id}.json"))
    }

    fn failed_at(&self, id: UnitId) -> Path {
        self.store.at(&format!("failed/{id}.json"))
    }

    fn plan_at(&self, file: UnitId) -> Path {
        self.store.at(&format!("plan/{file}.json"))
    }

    /// The units that are finished. Reads no entry: their names are all it takes.
    pub(crate) fn finished(&self) -> Result<HashSet<UnitId>> {
        self.ids("manifest")
    }

    /// The units that failed when they were last tried.
    pub(crate) fn failed(&self) -> Result<HashSet<UnitId>> {
        self.ids("failed")
    }

    fn ids(&self, folder: &str) -> Result<HashSet<UnitId>> {
        let found = self.store.list(&self.store.at(folder), true)?;
        let ids = found.iter().filter_map(|object| {
            let name = object.location.filename()?;
            UnitId::parse(name.strip_suffix(".json")?)
        });
        Ok(ids.collect())
    }

    /// Whether a unit is finished now.
    pub(crate) fn is_finished(&self, id: UnitId) -> Result<bool> {
        Ok(self.store.find(&self.entry_at(id))?.is_some())
    }

    /// The entry of a unit, if it is finished.
    pub(crate) fn entry(&self, id: UnitId) -> Result<Option<Entry>> {
        self.read(&self.entry_at(id))
    }

    /// Notes that a unit is finished; `false` if another run did so before.
    pub(crate) fn finish(&self, id: UnitId, entry: &Entry) -> Result<bool> {
        let at = self.entry_at(id);
        if self.store.create(&at, json(entry)?)? == Created::New {
            return Ok(true);
        }
        let there: Option<Entry> = self.read(&at)?;
        Ok(there.is_some_and(|there| there.by == entry.by))
    }

    /// Notes why a unit failed.
    pub(crate) fn fail(&self, id: UnitId, failed: &Failed) -> Result<()> {
        self.store.replace(&self.failed_at(id), json(failed)?)
    }

    /// Takes such a note away.
    pub(crate) fn mend(&self, id: UnitId) -> Result<()> {
        self.store.remove(&self.failed_at(id))
    }

    /// Why a unit failed, if it did.
    pub(crate) fn failure(&self, id: UnitId) -> Result<Option<Failed>> {
        self.read(&self.failed_at(id))
    }

    /// The row groups of a file that an earlier run noted.
    pub(crate) fn row_groups(&self, file: UnitId) -> Result<Option<RowGroups>> {
        self.read(&self.plan_at(file))
    }

    /// Notes the row groups of a file.
    pub(crate) fn note_row_groups(&self, file: UnitId, groups: &RowGroups) -> Result<()> {
        let created = self.store.create(&self.plan_at(file), json(groups)?);
        created.map(drop)
    }

    fn read<T: DeserializeOwned>(&self, at: &Path) -> Result<Option<T>> {
        let Some(bytes) = self.store.get(at)? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&bytes).map_err(|error| Error::Foreign {
            name: self.store.shown(at),
            detail: error.to_string(),
        });
        read.map(Some)
    }
}

/// The name of a file of a unit's output.
fn rows_name(id: UnitId, file: u32) -> String {
    match file {
        0 => format!("rows/{id}.parquet"),
        file => format!("rows/{id}-{file}.parquet"),
    }
}

fn json(value: &impl Serialize) -> Result<Bytes> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| Error::Spec(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes.into())
}
