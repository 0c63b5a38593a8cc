//! Labels as JSON objects: one a line, or one array.

use std::io::Write;

use isovec::{Classified, Label};
use serde_json::{Value, json};

use crate::error::Result;
use crate::input::Row;
use crate::output::Sink;
use crate::output::objects::{Frame, Objects, decimal};

/// What a row's object is, and `labels`: each with its name and its score, the highest score first.
pub(super) struct Labels<W> {
    objects: Objects<W>,
    most: usize,
}

impl<W: Write> Labels<W> {
    pub(super) fn new(writer: W, name: String, frame: Frame, most: Option<usize>) -> Self {
        Self {
            objects: Objects::new(writer, name, frame),
            most: most.unwrap_or(usize::MAX),
        }
    }
}

impl<W: Write> Sink<Classified> for Labels<W> {
    fn write(&mut self, row: Row, classified: Classified) -> Result<()> {
        let labels = classified.labels.into_iter().take(self.most);
        let labels: Value = labels.map(object).collect();
        self.objects
            .put(row, classified.truncated, "labels", labels)
    }

    fn flush(&mut self) -> Result<()> {
        self.objects.flush()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.objects.finish()
    }
}

fn object(label: Label) -> Value {
    json!({ "label": label.label, "score": decimal(label.score) })
}
