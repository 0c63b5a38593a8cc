//! The stages of a trace, for the error about an unknown stage.

use std::collections::BTreeSet;

use crate::graph::plain;

use super::load::Loaded;

/// Stages that are named, at most.
const MOST: usize = 50;

/// Numbers of stages in the words of a trace.
#[derive(Debug, Default)]
pub(super) struct Stages(BTreeSet<u32>);

impl Stages {
    /// Whether another one would change nothing: it would not be named.
    pub(super) fn are_enough(&self) -> bool {
        self.0.len() > MOST
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, stage: u32) {
        if !self.are_enough() {
            self.0.insert(stage);
        }
    }

    /// Their names, for people.
    pub(super) fn named(&self, loaded: &Loaded) -> String {
        let named = self.0.iter().take(MOST);
        let mut named: Vec<String> = named.map(|&stage| plain(loaded.word(stage))).collect();
        if self.are_enough() {
            named.push("others".into());
        }
        named.join(", ")
    }
}
