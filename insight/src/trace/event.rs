//! An event of a trace from any program.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// An event as it stands in the file. Fields may be missing or of any type: a trace is read by
/// whoever wants to know what went wrong, and is often not whole itself.
#[derive(Debug, Default)]
pub(crate) struct RawEvent<'a> {
    pub(crate) name: Any<'a>,
    pub(crate) cat: Any<'a>,
    pub(super) ph: Any<'a>,
    pub(crate) ts: Any<'a>,
    pub(crate) dur: Any<'a>,
    pid: Any<'a>,
    tid: Any<'a>,
    id: Any<'a>,
    id2: Id2<'a>,
    pub(crate) args: Args<'a>,
}

/// An id that says whether it is one everywhere or within its process only.
#[derive(Debug, Default)]
struct Id2<'a> {
    local: Any<'a>,
    global: Any<'a>,
}

/// What is read of an event's arguments.
#[derive(Debug, Default)]
pub(crate) struct Args<'a> {
    pub(super) name: Any<'a>,
    pub(super) op_name: Any<'a>,
    pub(super) request: Any<'a>,
    pub(crate) batch: Any<'a>,
    pub(super) requests: Any<'a>,
    pub(super) texts: Any<'a>,
    pub(super) ended: Any<'a>,
    pub(crate) rows: Any<'a>,
    pub(crate) tokens: Any<'a>,
    pub(super) positions: Any<'a>,
    pub(crate) width: Any<'a>,
    pub(crate) node: Any<'a>,
    pub(crate) provider: Any<'a>,
}

/// A value of any type, as far as events have use for it.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) enum Any<'a> {
    /// Nothing, or a value that is not read.
    #[default]
    None,
    Number(f64),
    Text(Cow<'a, str>),
    /// Numbers of a list.
    List(Vec<u64>),
    /// An object, of which only its identity matters.
    Identity(u64),
}

impl RawEvent<'_> {
    /// A span's stage and name. Our traces write the stage as the category. ONNX Runtime's categories
    /// are fewer than the things that it measures; its operators get a name that several nodes share.
    pub(super) fn stage_and_name(&self) -> (&str, &str) {
        let name = self.name.text();
        match self.cat.text() {
            "" => ("other", name),
            "Node" if name.ends_with("_kernel_time") => match self.args.op_name.text() {
                "" => ("operator", name.trim_end_matches("_kernel_time")),
                operator => ("operator", operator),
            },
            "Node" => ("fence", name),
            "Session" if name == "model_run" => ("run", name),
            "Session" => ("session", name),
            other => (other, name),
        }
    }

    /// The thread that it was on, and its process.
    pub(super) fn thread(&self) -> (u64, u64) {
        (self.pid.identity(), self.tid.identity())
    }

    /// What the beginning and the end of a span without a thread have in common.
    pub(super) fn identity(&self) -> u64 {
        let id = match (&self.id2.local, &self.id2.global) {
            (Any::None, Any::None) => (0, 0, self.id.identity()),
            (Any::None, global) => (1, 0, global.identity()),
            // Another process has the same one for something else.
            (local, _) => (2, self.pid.identity(), local.identity()),
        };
        hash(&(self.stage_and_name(), id))
    }
}

impl Any<'_> {
    /// A number that is one; text that reads as one counts.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.filter(|number| number.is_finite())
    }

    /// A whole number from 0 on.
    pub(crate) fn count(&self) -> Option<u64> {
        let number = self.number()?;
        (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64)
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// Something that is equal for equal values.
    pub(super) fn identity(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Number(number) => number.to_bits(),
            Self::Text(text) => hash(text.as_ref()),
            Self::List(list) => hash(list),
            Self::Identity(identity) => *identity,
        }
    }
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<'de: 'a, 'a> Deserialize<'de> for Any<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Any<'de>, E> {
        Ok(Any::None)
    }

    fn visit_unit<E>(self) -> Result<Any<'de>, E> {
        Ok(Any::None)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Any<'de>, E> {
        Ok(Any::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Any<'de>, E> {
        Ok(Any::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Any<'de>, E> {
        Ok(Any::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Any<'de>, E> {
        Ok(Any::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Any<'de>, E> {
        Ok(Any::Text(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Any<'de>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(element) = list.next_element::<Any<'de>>()? {
            numbers.extend(element.count());
        }
        Ok(Any::List(numbers))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any<'de>, A::Error> {
        let mut all = 0_u64;
        while let Some((key, value)) = map.next_entry::<Any<'de>, Any<'de>>()? {
            all = hash(&(all, key.identity(), value.identity()));
        }
        Ok(Any::Identity(all))
    }
}

/// Reads the named fields of an object, whatever else is in it and however often; what is no
/// object has none of them.
macro_rules! fields {
    ($object:ident, $visitor:ident, $field:ident { $($name:literal => $variant:ident $slot:ident),* $(,)? }) => {
        #[derive(Deserialize)]
        #[serde(field_identifier)]
        enum $field {
            $(#[serde(rename = $name)] $variant,)*
            #[serde(other)]
            Other,
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $object<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($visitor)
            }
        }

        struct $visitor;

        impl<'de> Visitor<'de> for $visitor {
            type Value = $object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok($object::default())
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok($object::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok($object::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok($object::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok($object::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok($object::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok($object::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut object = $object::default();
                while let Some(field) = map.next_key::<$field>()? {
                    match field {
                        $($field::$variant => object.$slot = map.next_value()?,)*
                        $field::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(object)
            }
        }
    };
}

fields!(RawEvent, EventVisitor, EventField {
    "name" => Name name,
    "cat" => Cat cat,
    "ph" => Ph ph,
    "ts" => Ts ts,
    "dur" => Dur dur,
    "pid" => Pid pid,
    "tid" => Tid tid,
    "id" => Id id,
    "id2" => Id2 id2,
    "args" => Args args,
});

fields!(Id2, Id2Visitor, Id2Field {
    "local" => Local local,
    "global" => Global global,
});

fields!(Args, ArgsVisitor, ArgsField {
    "name" => Name name,
    "op_name" => OpName op_name,
    "request" => Request request,
    "batch" => Batch batch,
    "requests" => Requests requests,
    "texts" => Texts texts,
    "ended" => Ended ended,
    "rows" => Rows rows,
    "tokens" => Tokens tokens,
    "positions" => Positions positions,
    "width" => Width width,
    "node" => Node node,
    "provider" => Provider provider,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_any_type_are_read_as_far_as_they_make_sense() {
        let text = r#"{"ph": "X", "name": "a\"b", "ts": "12.5", "dur": -3, "pid": {"x": 1}, "tid": null,
            "other": [1, {"ph": 2}], "ts": 13, "args": {"requests": [1, "2", {}, -4], "op_name": 7}}"#;
        let event: RawEvent<'_> = serde_json::from_str(text).unwrap();
        assert_eq!((event.ph.text(), event.name.text()), ("X", "a\"b"));
        assert_eq!(event.ts.number(), Some(13.0));
        assert_eq!(event.dur.number(), Some(-3.0));
        assert_eq!(event.args.requests, Any::List(vec![1, 2]));
        assert_eq!(event.args.op_name.text(), "");
    }

    #[test]
    fn an_id_is_local_to_its_process_if_it_says_so() {
        let identity = |text: &str| {
            let event: RawEvent<'_> = serde_json::from_str(text).unwrap();
            event.identity()
        };
        let in_both = |id: &str| {
            [1, 2].map(|pid| identity(&format!("{{\"pid\": {pid}, \"name\": \"load\", {id}}}")))
        };
        let [local, elsewhere] = in_both("\"id2\": {\"local\": \"0x1\"}");
        assert_ne!(local, elsewhere);
        let [global, same] = in_both("\"id2\": {\"global\": \"0x1\"}");
        assert_eq!(global, same);
        let [plain, same] = in_both("\"id\": \"0x1\"");
        assert_eq!(plain, same);
        assert!(local != global && global != plain && plain != local);
    }

    #[test]
    fn what_is_no_event_has_no_phase() {
        for text in [
            "1",
            "-1",
            "1.5",
            "null",
            "true",
            "\"X\"",
            "[\"X\", {}]",
            "{\"args\": 5}",
        ] {
            let event: RawEvent<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(event.ph, Any::None, "{text}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_not_read() {
        for text in ["NaN", "inf", "1e999", "", "x"] {
            assert_eq!(Any::Text(text.into()).number(), None, "{text}");
        }
        assert_eq!(Any::Number(-1.0).count(), None);
        assert_eq!(Any::Number(1e300).count(), None);
    }
}
