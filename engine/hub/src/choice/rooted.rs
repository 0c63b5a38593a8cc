//! A folder of a model as if it were the root.

use std::borrow::Cow;

use isovec_engine::error::Result;

use super::describe::join;
use super::{Known, Presence, Question, Stop, Weights};

/// The known facts about what lies in a folder.
pub(super) struct Rooted<'a> {
    known: &'a dyn Known,
    folder: &'a str,
    /// Both, for messages.
    origin: String,
}

impl<'a> Rooted<'a> {
    pub(super) fn new(known: &'a dyn Known, folder: &'a str) -> Self {
        Self {
            known,
            folder,
            origin: format!("{}/{folder}", known.origin()),
        }
    }

    /// Questions as the model has the files that they are about.
    pub(super) fn outside(&self, stop: Stop) -> Stop {
        let Stop::Ask(questions) = stop else {
            return stop;
        };
        let questions = questions.into_iter().map(|question| Question {
            path: join(self.folder, &question.path),
            ..question
        });
        Stop::Ask(questions.collect())
    }

    /// Weights by the names that the model has for their files.
    pub(super) fn weights(&self, weights: Weights) -> Weights {
        let outside = |file: String| join(self.folder, &file);
        match weights {
            Weights::None => Weights::None,
            Weights::Onnx(file) => Weights::Onnx(outside(file)),
            Weights::Checkpoint(file) => Weights::Checkpoint(outside(file)),
            Weights::Static(file) => Weights::Static(outside(file)),
            Weights::Shards { index, tensors } => {
                let tensors = tensors.into_iter();
                Weights::Shards {
                    index: outside(index),
                    tensors: tensors
                        .map(|(tensor, shard)| (tensor, outside(shard)))
                        .collect(),
                }
            }
        }
    }

    /// Files by the names that the model has for them.
    pub(super) fn files(&self, files: Vec<String>) -> Vec<String> {
        let files = files.into_iter();
        files.map(|file| join(self.folder, &file)).collect()
    }
}

impl Known for Rooted<'_> {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn names(&self) -> Option<Vec<&str>> {
        let names = self.known.names()?.into_iter();
        let inside = names.filter_map(|name| name.strip_prefix(self.folder)?.strip_prefix('/'));
        Some(inside.collect())
    }

    fn presence(&self, path: &str) -> Presence {
        self.known.presence(&join(self.folder, path))
    }

    fn content(&self, path: &str) -> Result<Option<Cow<'_, [u8]>>> {
        self.known.content(&join(self.folder, path))
    }
}
