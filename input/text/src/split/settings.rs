//! Reading the settings of a normaliser or pre-tokeniser from its JSON.

use serde_json::Value;

use crate::error::Fault;

/// A component's settings.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// What the component is, for messages.
    part: &'a str,
    value: &'a Value,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(part: &'a str, value: &'a Value) -> Self {
        Self { part, value }
    }

    /// The member `type`; empty where there is none.
    pub(crate) fn kind(self) -> &'a str {
        let kind = self.value.get("type").and_then(Value::as_str);
        kind.unwrap_or_default()
    }

    /// A member, unless it is missing or null.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// A switch that may be left out.
    pub(crate) fn switch(self, name: &str) -> Result<Option<bool>, Fault> {
        self.get(name)
            .map(|value| value.as_bool().ok_or_else(|| self.wrong(name)))
            .transpose()
    }

    /// A switch that has to be there.
    pub(crate) fn required(self, name: &str) -> Result<bool, Fault> {
        self.switch(name)?.ok_or_else(|| self.wrong(name))
    }

    pub(crate) fn text(self, name: &str) -> Result<&'a str, Fault> {
        let text = self.get(name).and_then(Value::as_str);
        text.ok_or_else(|| self.wrong(name))
    }

    pub(crate) fn character(self, name: &str) -> Result<char, Fault> {
        let mut characters = self.text(name)?.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(self.wrong(name)),
        }
    }

    pub(crate) fn list(self, name: &str) -> Result<&'a [Value], Fault> {
        let list = self.get(name).and_then(Value::as_array);
        list.map(Vec::as_slice).ok_or_else(|| self.wrong(name))
    }

    pub(crate) fn wrong(self, name: &str) -> Fault {
        Fault::Invalid(format!(
            "its {} {:?} has no usable {name:?}",
            self.part,
            self.kind()
        ))
    }

    /// A fault of one of its settings, with the component's name before it.
    pub(crate) fn blame(self, fault: Fault) -> Fault {
        let (part, kind) = (self.part, self.kind());
        match fault {
            Fault::Invalid(words) => Fault::Invalid(format!("its {part} {kind:?}: {words}")),
            Fault::Excess(words) => Fault::Excess(format!("its {part} {kind:?}: {words}")),
            Fault::Unsupported(words) => {
                Fault::Unsupported(format!("{words}, for its {part} {kind:?},"))
            }
        }
    }

    pub(crate) fn unsupported(self) -> Fault {
        Fault::Unsupported(format!("the {} {:?}", self.part, self.kind()))
    }
}
