//! The prompts before texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::encoded::Encoded;
use crate::cache::Scope;
use crate::config::TextConfig;
use crate::effective::EffectiveConfig;
use crate::error::{Error, Result};
use crate::sentence_transformers::ModelFiles;

/// The prompt before every text of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prompt {
    /// The model's default prompt, if it names one; most do not.
    #[default]
    Default,
    /// Nothing.
    None,
    /// The prompt for texts to search with.
    Query,
    /// The prompt for texts to search in.
    Passage,
    /// One of the model's or the configuration's prompts, by its name.
    Named(String),
    /// This text. Vectors made with it count as comparable to the model's others; whether they
    /// are is the caller's knowledge.
    Text(String),
}

/// What a prompt does with texts: what stands before them, and which of the model's adapters reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    text: String,
    adapter: Option<u32>,
}

impl Deref for Lead {
    type Target = str;

    /// The text.
    fn deref(&self) -> &str {
        &self.text
    }
}

impl Lead {
    /// Texts behind it as the model reads them.
    pub(crate) fn adapt(&self, texts: Vec<Encoded>) -> Vec<Encoded> {
        match self.adapter {
            None => texts,
            Some(adapter) => texts
                .into_iter()
                .map(|text| text.adapted(adapter))
                .collect(),
        }
    }

    /// The scope of rows of texts behind it.
    pub(crate) fn scope(&self, scope: &Scope) -> Scope {
        match self.adapter {
            None => scope.clone(),
            Some(adapter) => scope.adapted(adapter),
        }
    }
}

/// Names of the prompt of queries, and of that of passages: those of sentence-transformers' `encode_query` and `encode_document`, then
/// those of jina-embeddings-v3's tasks.
const QUERY: [&str; 2] = ["query", "retrieval.query"];
const PASSAGE: [&str; 4] = ["document", "passage", "corpus", "retrieval.passage"];

/// The prompts of a model, the configuration's put over its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompts {
    named: BTreeMap<String, String>,
    /// Names of the model's adapters. A prompt of such a name has its text, if it is there, and its adapter.
    adapters: Vec<String>,
    /// The name of the prompt of a call that says nothing of one.
    default_name: Option<String>,
    query: Option<String>,
    passage: Option<String>,
}

impl Prompts {
    /// Roles look for their prompt under their names, and fall back to the default prompt as sentence-transformers' do.
    pub(crate) fn new(files: &ModelFiles, config: &TextConfig) -> Self {
        let mut named = files.prompts.clone();
        named.extend(config.prompts.clone());
        let default = files
            .default_prompt
            .as_ref()
            .and_then(|name| named.get(name));
        let role = |own: &Option<String>, names: &[&str]| {
            let find = |prompts: &BTreeMap<String, String>| {
                names.iter().find_map(|&name| prompts.get(name).cloned())
            };
            own.clone()
                .or_else(|| find(&config.prompts))
                .or_else(|| find(&files.prompts))
                .or_else(|| default.cloned())
        };
        let query = role(&config.query_prompt, &QUERY);
        let passage = role(&config.passage_prompt, &PASSAGE);
        Self {
            named,
            adapters: Vec::new(),
            default_name: files.default_prompt.clone(),
            query,
            passage,
        }
    }

    /// The same of a model with adapters of these names, in the order of their numbers.
    pub(crate) fn with_adapters(mut self, names: Vec<String>) -> Self {
        self.adapters = names;
        self
    }

    /// What the prompt does with texts, and what to call it.
    pub(crate) fn resolve(&self, prompt: &Prompt) -> Result<(Lead, Option<String>)> {
        let adapter = self.adapter(prompt);
        let found = match prompt {
            Prompt::None => None,
            Prompt::Default => self.default().map(|text| (text, "default")),
            Prompt::Query => self.query.as_ref().map(|text| (text, "query")),
            Prompt::Passage => self.passage.as_ref().map(|text| (text, "passage")),
            Prompt::Text(text) => Some((text, "text")),
            Prompt::Named(name) => match self.named.get(name) {
                Some(text) => Some((text, name.as_str())),
                None if adapter.is_some() => None,
                None => {
                    let known = self.named.keys().chain(&self.adapters).map(String::as_str);
                    let known: BTreeSet<&str> = known.collect();
                    let known: Vec<&str> = known.into_iter().collect();
                    let known = if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    };
                    return Err(Error::Config(vec![format!(
                        "there is no prompt {name:?}; this model has {known}"
                    )]));
                }
            },
        };
        let (text, name) = match found {
            Some((text, name)) if !text.is_empty() => (text.clone(), Some(name.to_owned())),
            _ => (
                String::new(),
                adapter.and_then(|at| self.adapters.get(at as usize).cloned()),
            ),
        };
        Ok((Lead { text, adapter }, name))
    }

    /// The text of the default prompt.
    fn default(&self) -> Option<&String> {
        self.named.get(self.default_name.as_deref()?)
    }

    /// The adapter of a prompt: that of its name, and of a role the one of the role's names.
    fn adapter(&self, prompt: &Prompt) -> Option<u32> {
        let find = |names: &[&str]| {
            let at = |name: &&str| self.adapters.iter().position(|own| own == *name);
            names.iter().find_map(at)
        };
        let at = match prompt {
            Prompt::None | Prompt::Text(_) => None,
            Prompt::Default => find(&[self.default_name.as_deref()?]),
            Prompt::Query => find(&QUERY),
            Prompt::Passage => find(&PASSAGE),
            Prompt::Named(name) => find(&[name]),
        };
        at.and_then(|at| u32::try_from(at).ok())
    }

    /// Notes what each role puts in front.
    pub(crate) fn note(&self, effective: &mut EffectiveConfig, config: &TextConfig) {
        let shown =
            |prompt: &Option<String>| format!("{:?}", prompt.as_deref().unwrap_or_default());
        let roles = [
            ("text.query_prompt", &config.query_prompt, &self.query),
            ("text.passage_prompt", &config.passage_prompt, &self.passage),
        ];
        for (name, asked, used) in roles {
            let asked = asked.as_ref().map(|text| format!("{text:?}"));
            effective.note_own(
                name,
                asked.as_ref(),
                shown(used),
                "the model's files, or text.prompts",
            );
        }
        let named: Vec<&str> = self.named.keys().map(String::as_str).collect();
        let asked = (!config.prompts.is_empty()).then(|| named.join(", "));
        effective.note_own(
            "text.prompts",
            asked.as_ref(),
            named.join(", "),
            "the model's files",
        );
    }

    /// Whether some role puts something before its texts.
    pub(crate) fn any(&self) -> bool {
        [self.default(), self.query.as_ref(), self.passage.as_ref()]
            .into_iter()
            .flatten()
            .any(|text| !text.is_empty())
    }

    /// Every text that is put before others, the empty one among them.
    pub(crate) fn texts(&self) -> BTreeSet<&str> {
        // The default prompt is one of those with a name.
        let roles = [&self.query, &self.passage];
        let named = self.named.values().map(String::as_str);
        let roles = roles.into_iter().flatten().map(String::as_str);
        named.chain(roles).chain([""]).collect()
    }

    /// The prompts in use, for the fingerprint: a query and a passage are only comparable when
    /// both sides agree on what each role is given.
    pub(crate) fn identity(&self) -> String {
        let text =
            |prompt: Option<&String>| serde_json::Value::from(prompt.cloned().unwrap_or_default());
        let roles = [
            ("default", text(self.default())),
            ("passage", text(self.passage.as_ref())),
            ("query", text(self.query.as_ref())),
        ];
        let fields: Vec<String> = roles
            .iter()
            .map(|(name, text)| format!("\"{name}\":{text}"))
            .collect();
        format!("{{{}}}", fields.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(prompts: &[(&str, &str)], default: Option<&str>) -> ModelFiles {
        ModelFiles {
            prompts: prompts
                .iter()
                .map(|&(name, text)| (name.into(), text.into()))
                .collect(),
            default_prompt: default.map(str::to_owned),
            ..ModelFiles::default()
        }
    }

    fn text(prompts: &Prompts, prompt: Prompt) -> String {
        prompts.resolve(&prompt).unwrap().0.to_string()
    }

    #[test]
    fn roles_find_their_prompts() {
        let model = files(
            &[("query", "q: "), ("document", "d: "), ("topic", "t: ")],
            Some("topic"),
        );
        let prompts = Prompts::new(&model, &TextConfig::default());
        assert_eq!(text(&prompts, Prompt::Query), "q: ");
        assert_eq!(text(&prompts, Prompt::Passage), "d: ");
        assert_eq!(text(&prompts, Prompt::Default), "t: ");
        assert_eq!(text(&prompts, Prompt::None), "");
        let (lead, name) = prompts.resolve(&Prompt::Named("topic".into())).unwrap();
        assert_eq!((&*lead, name.as_deref()), ("t: ", Some("topic")));
        assert_eq!(
            prompts
                .resolve(&Prompt::Named("x".into()))
                .unwrap_err()
                .kind(),
            "Config"
        );
        assert_eq!(text(&prompts, Prompt::Text("own ".into())), "own ");
    }

    #[test]
    fn a_prompt_has_the_adapter_of_its_name() {
        let names = [
            "retrieval.query",
            "retrieval.passage",
            "separation",
            "topic",
        ];
        let named = [
            ("retrieval.query", "find: "),
            ("separation", ""),
            ("other", "o: "),
        ];
        let prompts = Prompts::new(&files(&named, Some("separation")), &TextConfig::default());
        let prompts = prompts.with_adapters(names.map(str::to_owned).into());
        let read = |prompt: Prompt| {
            let (lead, name) = prompts.resolve(&prompt).unwrap();
            (lead.text, lead.adapter, name.unwrap_or_default())
        };
        let of = |text: &str, adapter, name: &str| (text.to_owned(), adapter, name.to_owned());
        assert_eq!(read(Prompt::Query), of("find: ", Some(0), "query"));
        assert_eq!(read(Prompt::Passage), of("", Some(1), "retrieval.passage"));
        assert_eq!(read(Prompt::Default), of("", Some(2), "separation"));
        // An adapter without a text of its own.
        assert_eq!(
            read(Prompt::Named("topic".into())),
            of("", Some(3), "topic")
        );
        // A text without an adapter.
        assert_eq!(
            read(Prompt::Named("other".into())),
            of("o: ", None, "other")
        );
        assert_eq!(read(Prompt::Text("own ".into())), of("own ", None, "text"));
        assert_eq!(read(Prompt::None), of("", None, ""));
        let error = prompts.resolve(&Prompt::Named("x".into())).unwrap_err();
        let known = "other, retrieval.passage, retrieval.query, separation, topic";
        assert!(error.to_string().contains(known), "{error}");
    }

    #[test]
    fn the_configuration_comes_first_and_the_default_last() {
        let model = files(&[("query", "q: "), ("topic", "t: ")], Some("topic"));
        let mut config = TextConfig {
            query_prompt: Some("mine: ".into()),
            ..TextConfig::default()
        };
        let prompts = Prompts::new(&model, &config);
        assert_eq!(text(&prompts, Prompt::Query), "mine: ");
        assert_eq!(text(&prompts, Prompt::Passage), "t: ");
        config.prompts.insert("passage".into(), "p: ".into());
        assert_eq!(text(&Prompts::new(&model, &config), Prompt::Passage), "p: ");
    }

    #[test]
    fn the_identity_sees_every_role() {
        let plain = Prompts::new(&files(&[], None), &TextConfig::default());
        assert_eq!(
            plain.identity(),
            r#"{"default":"","passage":"","query":""}"#
        );
        assert!(!plain.any());
        let config = TextConfig {
            query_prompt: Some("a \"b\" ".into()),
            ..TextConfig::default()
        };
        let other = Prompts::new(&files(&[], None), &config);
        assert_eq!(
            other.identity(),
            r#"{"default":"","passage":"","query":"a \"b\" "}"#
        );
        assert!(other.any());
    }
}
