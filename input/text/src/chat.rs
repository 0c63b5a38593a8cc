//! Frames from chat templates: the files that say how a decoder's input is written.
//!
//! A template is a program in Jinja's language (<https://huggingface.co/docs/transformers/chat_templating>). It is run once or twice
//! when a model is loaded, with marks in place of the texts. What it writes around the marks is the frame.

use std::collections::BTreeMap;

use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};

use crate::pair_frame::{PairFrame, Part};

/// The longest template that is run, and the longest text that it may write, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Steps of a template, generously.
const MOST_STEPS: u64 = 100_000;

/// What stands for the instruction and the two texts. No template has such characters: they are for private use.
const MARKS: [(&str, Part); 3] = [
    ("\u{f0000}instruction\u{f0000}", Part::Instruction),
    ("\u{f0000}first\u{f0000}", Part::First),
    ("\u{f0000}second\u{f0000}", Part::Second),
];

impl PairFrame {
    /// The frame that a chat template writes around messages of the roles `query` and `document`, behind one of the role `system` where
    /// there is an instruction, as sentence-transformers' `CrossEncoder` hands them over. `variables` are what else the template knows.
    ///
    /// # Errors
    /// What is wrong with the template: it cannot be run, or it leaves a text out, repeats it or changes their order.
    pub fn of_chat(
        template: &str,
        variables: &BTreeMap<String, serde_json::Value>,
    ) -> Result<Self, String> {
        if template.len() > MOST_BYTES {
            return Err(format!(
                "it has {} bytes, and {MOST_BYTES} are the most",
                template.len()
            ));
        }
        let chat = Chat::new(template, variables).map_err(|error| said(&error))?;
        let plain = chat.write(false).map_err(|error| said(&error))?;
        let plain = parts(&plain)?;
        if plain.contains(&Part::Instruction) {
            return Err("it writes an instruction where there is none".into());
        }
        in_order(&plain)?;
        // A template need not have a place for an instruction, and some refuse one.
        let instructed = chat.write(true).ok().and_then(|text| parts(&text).ok());
        let instructed = instructed
            .filter(|parts| parts.contains(&Part::Instruction) && in_order(parts).is_ok());
        Ok(Self { plain, instructed })
    }
}

/// A template that is ready to run.
struct Chat<'t> {
    environment: Environment<'t>,
    variables: Value,
}

impl<'t> Chat<'t> {
    fn new(
        template: &'t str,
        variables: &BTreeMap<String, serde_json::Value>,
    ) -> Result<Self, Error> {
        let mut environment = Environment::new();
        // As transformers sets them.
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(MOST_STEPS));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment.add_template("chat", template)?;
        Ok(Self {
            environment,
            variables: Value::from_serialize(variables),
        })
    }

    /// What the template writes of the marks.
    fn write(&self, instructed: bool) -> Result<String, Error> {
        let roles = ["system", "query", "document"];
        let messages = roles.iter().zip(&MARKS).skip(usize::from(!instructed));
        let messages: Vec<Value> = messages
            .map(|(role, (mark, _))| context!(role, content => mark))
            .collect();
        let template = self.environment.get_template("chat")?;
        template.render(context!(messages, ..self.variables.clone()))
    }
}

fn said(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// A text with marks as parts.
fn parts(text: &str) -> Result<Vec<Part>, String> {
    if text.len() > MOST_BYTES {
        return Err(format!(
            "it writes {} bytes, and {MOST_BYTES} are the most",
            text.len()
        ));
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next = MARKS
            .iter()
            .filter_map(|(mark, part)| Some((rest.find(mark)?, *mark, part)));
        let Some((at, mark, part)) = next.min_by_key(|(at, ..)| *at) else {
            parts.push(Part::Words(rest.to_owned()));
            break;
        };
        if at > 0 {
            parts.push(Part::Words(rest[..at].to_owned()));
        }
        parts.push(part.clone());
        rest = &rest[at + mark.len()..];
    }
    Ok(parts)
}

/// Refuses parts without one of the texts, with one of them twice, and with the second before the first.
fn in_order(parts: &[Part]) -> Result<(), String> {
    let count = |wanted: &Part| parts.iter().filter(|part| *part == wanted).count();
    for (text, role) in [(Part::First, "query"), (Part::Second, "document")] {
        match count(&text) {
            1 => {}
            0 => return Err(format!("it leaves out a message of the role {role:?}")),
            _ => {
                return Err(format!(
                    "it writes a message of the role {role:?} more than once"
                ));
            }
        }
    }
    let place = |wanted: &Part| parts.iter().position(|part| part == wanted);
    match place(&Part::First) < place(&Part::Second) {
        true => Ok(()),
        false => Err("it writes the document before the query".into()),
    }
}
