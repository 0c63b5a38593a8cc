//! Frames from chat templates: the files that say how a decoder's input is written.
//!
//! A template is a program in Jinja's language (<https://jinja.palletsprojects.com/en/stable/templates/>), with transformers' settings
//! (<https://huggingface.co/docs/transformers/chat_templating>). It is run once or twice when a model is loaded, with marks in place of the
//! texts. What it writes around the marks is the frame.
//!
//! The language is read here, and not by a library, for two reasons. A template is a stranger's program, and no library bounds the bytes
//! that one may make. And the smallest library would be a quarter of what a page downloads besides the model. Tests compare what is
//! written with the crate `minijinja`. What templates of chats use is known: statements `set`, `for` and `if`, operators, and the filters,
//! tests and methods in `run.rs`. Anything else is refused by its name.

mod pieces;
mod run;
mod syntax;
#[cfg(test)]
mod twins;

use std::collections::BTreeMap;

use self::run::{Value, write};
use self::syntax::{Node, parse};
use crate::pair_frame::{PairFrame, Part};

/// The longest template that is run, in bytes: several times the longest that is published.
const MOST_BYTES: usize = 64 << 10;

/// What is wrong with a template.
type Fault = String;

fn wrong(line: usize, why: String) -> Fault {
    match line {
        0 => why,
        line => format!("line {line}: {why}"),
    }
}

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
        Self::read(template, variables).map_err(short)
    }

    fn read(
        template: &str,
        variables: &BTreeMap<String, serde_json::Value>,
    ) -> Result<Self, Fault> {
        let chat = Chat {
            nodes: parse(template)?,
            variables: variables
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), of_json(value)?)))
                .collect(),
        };
        let plain = chat.write(false)?;
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

/// What is wrong, without most of a long name or text of the template's.
fn short(fault: Fault) -> Fault {
    match fault.char_indices().nth(300) {
        None => fault,
        Some((end, _)) => format!("{}...", &fault[..end]),
    }
}

/// A template that is ready to run.
struct Chat {
    nodes: Vec<Node>,
    variables: BTreeMap<String, Value>,
}

impl Chat {
    /// What the template writes of the marks.
    fn write(&self, instructed: bool) -> Result<String, Fault> {
        let roles = ["system", "query", "document"];
        let messages = roles.iter().zip(&MARKS).skip(usize::from(!instructed));
        let message = |(role, (mark, _)): (&&str, &(&str, Part))| {
            let entries = [
                ("role", Value::from(*role)),
                ("content", Value::from(*mark)),
            ];
            let entries = entries.map(|(name, value)| (name.to_owned(), value));
            Value::Map(BTreeMap::from(entries).into())
        };
        let messages: Vec<Value> = messages.map(message).collect();
        let mut globals = self.variables.clone();
        globals.insert("messages".into(), Value::List(messages.into()));
        write(&self.nodes, globals)
    }
}

/// A variable of a template.
fn of_json(value: &serde_json::Value) -> Option<Value> {
    Some(match value {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(flag) => Value::Flag(*flag),
        serde_json::Value::Number(number) => Value::Number(number.as_i64()?),
        serde_json::Value::String(text) => Value::from(&**text),
        _ => return None,
    })
}

/// A text with marks as parts.
fn parts(text: &str) -> Result<Vec<Part>, String> {
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
