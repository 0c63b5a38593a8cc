//! A JSON object, and nothing else.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// What is read from an object. Left to itself, serde reads a list as the fields in their order, too.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_fields_is_no_object() {
        #[derive(Debug, serde::Deserialize)]
        struct Pair {
            a: u8,
            b: u8,
        }
        let read = |json| serde_json::from_str::<Object<Pair>>(json);
        let Object(Pair { a, b }) = read(r#"{"b": 2, "a": 1}"#).unwrap();
        assert_eq!((a, b), (1, 2));
        assert!(serde_json::from_str::<Pair>("[1, 2]").is_ok());
        let error = read("[1, 2]").unwrap_err().to_string();
        assert!(error.contains("expected an object"), "{error}");
    }
}
