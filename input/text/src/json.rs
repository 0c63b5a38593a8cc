//! Reads JSON values of an untrusted file: no member twice, and no more values than the file's length allows.
//!
//! `serde_json::Value` silently keeps the last of two members with one name, so one file could be read in two ways.
//! It also takes up to ninety bytes of memory for a byte of `[{"":0},...]`.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Units of about 32 bytes that all values of a file may take together, beside one for every
/// [`BYTES_OF_A_UNIT`] bytes of the file.
const UNITS: usize = 1 << 18;
const BYTES_OF_A_UNIT: usize = 4;

/// The first member of an object takes a whole node of a tree, that of an array room for four.
const OBJECT: usize = 20;
const ARRAY: usize = 4;
const MEMBER: usize = 2;

/// How much the values of one file may still take.
#[derive(Debug)]
pub(crate) struct Room {
    left: Cell<Option<usize>>,
}

impl Room {
    /// For a file of so many bytes.
    pub(crate) fn of(length: usize) -> Self {
        Self {
            left: Cell::new(Some(UNITS.saturating_add(length / BYTES_OF_A_UNIT))),
        }
    }

    /// Whether there was not enough.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.left.get().is_none()
    }

    fn take<E: Error>(&self, units: usize) -> Result<(), E> {
        self.left
            .set(self.left.get().and_then(|left| left.checked_sub(units)));
        match self.is_exceeded() {
            false => Ok(()),
            true => Err(E::custom(
                "it holds more values than a file of its length may",
            )),
        }
    }
}

/// Reads one value.
#[derive(Clone, Copy)]
pub(crate) struct Bounded<'a>(pub(crate) &'a Room);

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.0.take(1)?;
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.0.take(1)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.0.take(1)?;
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.0.take(1)?;
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.0.take(1)?;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.take(1)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.0.take(ARRAY)?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.0.take(OBJECT)?;
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.0.take(MEMBER)?;
            if members.contains_key(&name) {
                return Err(twice(&name));
            }
            members.insert(name, map.next_value_seed(self)?);
        }
        Ok(Value::Object(members))
    }
}

/// A name that occurs twice: which of the two counts depends on who reads it.
pub(crate) fn twice<E: Error>(name: &str) -> E {
    E::custom(format_args!("{name:?} is there twice"))
}

/// Reads a whole value of its own, such as a side file's member.
pub(crate) fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Bounded(&Room::of(0)).deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &str, room: &Room) -> Result<Value, String> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let value = Bounded(room).deserialize(&mut deserializer);
        value.map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_what_they_are() {
        let value = json!({"a": [null, true, -1, 18_446_744_073_709_551_615_u64, 0.5, "x", {}], "b": {"c": []}});
        let room = Room::of(0);
        assert_eq!(read(&value.to_string(), &room).unwrap(), value);
    }

    #[test]
    fn a_name_twice_is_refused_at_any_depth() {
        for json in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"c":2,"a":3}}]"#] {
            let error = read(json, &Room::of(json.len())).unwrap_err();
            assert!(error.contains("\"a\" is there twice"), "{error}");
        }
    }

    #[test]
    fn a_file_of_small_values_is_refused_before_they_are_all_made() {
        for value in ["0", "[0]", r#"{"":0}"#, "[]"] {
            let json = format!("[{}0]", format!("{value},").repeat(2_000_000));
            let room = Room::of(json.len());
            assert!(read(&json, &room).is_err() && room.is_exceeded(), "{value}");
        }
    }
}
