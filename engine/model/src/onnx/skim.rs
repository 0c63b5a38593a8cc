//! Counts the cost of a file's structure before any of it is spent.
//!
//! Two bytes of protobuf can stand for a message whose Rust type has more than a thousand, and one byte for an
//! element of eight, so a small hostile file could ask for more memory than there is. No code can catch a lack of
//! memory as an error. Raw tensor bytes are not counted: they stay in the file.

use std::mem::size_of;

use isovec_engine::budget::{Budget, Resource};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::{
    AttributeProto, Dimension, FunctionProto, GraphProto, MapType, ModelProto, NodeProto,
    OperatorSetIdProto, SequenceType, SparseTensorProto, StringStringEntryProto, TensorAnnotation,
    TensorProto, TensorShapeProto, TensorType, TypeProto, ValueInfoProto,
};
use isovec_engine::onnx::proto::{field, varints};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Nesting at which the decoder gives up.
const MAX_DEPTH: usize = 100;

/// Takes what the messages of an ONNX file will cost from the budget. A file that is not well formed passes: decoding it
/// stops at the same place, with better words.
///
/// # Errors
/// [`EngineError::OverBudget`]; [`EngineError::InvalidModel`] for a tensor with more elements than its shape has;
/// [`EngineError::Cancelled`].
pub(super) fn check_size(origin: &str, file: &[u8], budget: &mut Budget) -> Result<()> {
    let mut skim = Skim { origin, budget };
    match skim.message(Kind::Model, file, MAX_DEPTH) {
        Err(Stop::Refused(error)) => Err(*error),
        Ok(()) | Err(Stop::Malformed) => Ok(()),
    }
}

enum Stop {
    Refused(Box<EngineError>),
    Malformed,
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Refused(Box::new(error))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Sparse,
    Function,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    Dimension,
    Sequence,
    Map,
    Annotation,
    OperatorSet,
    Entry,
    /// A string or byte string in a list.
    Text,
}

impl Kind {
    /// What a field holds, if it is something that takes memory of its own. The numbers are
    /// those of `onnx.proto`.
    fn field(self, tag: u32) -> Option<Self> {
        Some(match (self, tag) {
            (Self::Model, 7) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Node, 5) | (Self::Function, 11) => Self::Attribute,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::Sparse, 1 | 2) => Self::Tensor,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::Sparse,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 11..=13) | (Self::Function, 12) => Self::ValueInfo,
            (Self::ValueInfo, 2) | (Self::Attribute, 14 | 15) => Self::Type,
            (Self::Sequence, 1) | (Self::Map, 2) => Self::Type,
            (Self::Type, 1 | 8) => Self::TensorType,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Shape, 1) => Self::Dimension,
            (Self::Type, 4 | 9) => Self::Sequence,
            (Self::Type, 5) => Self::Map,
            (Self::Graph, 14) => Self::Annotation,
            (Self::Model, 8) | (Self::Function, 9) => Self::OperatorSet,
            (Self::Model | Self::Function, 14) | (Self::Graph | Self::Tensor, 16) => Self::Entry,
            (Self::Node, 9) | (Self::ValueInfo, 4) => Self::Entry,
            (Self::Tensor, 13) | (Self::Annotation, 2) => Self::Entry,
            (Self::Node, 1 | 2) | (Self::Attribute, 9) | (Self::Tensor, 6) => Self::Text,
            (Self::Function, 4..=6) => Self::Text,
            _ => return None,
        })
    }

    /// Whether the field holds one message at most. It is part of the message that it is in, or in a box.
    fn is_single(self, tag: u32) -> bool {
        match self {
            Self::Model => tag == 7,
            Self::Attribute => matches!(tag, 5 | 6 | 14 | 22),
            Self::Sparse => matches!(tag, 1 | 2),
            Self::ValueInfo | Self::TensorType => tag == 2,
            Self::Map => tag == 2,
            Self::Sequence => tag == 1,
            Self::Type => true,
            _ => false,
        }
    }

    /// Bytes in memory of an element, where the field is a list of numbers.
    fn element(self, tag: u32) -> Option<Element> {
        Some(match (self, tag) {
            (Self::Tensor, field::DIMS) | (Self::Sparse, 3) => Element::extent(),
            (Self::Tensor, field::FLOATS) => Element::fixed(4),
            (Self::Tensor, field::INT32S) => Element::varint(4),
            (Self::Tensor, field::INT64S | field::UINT64S) => Element::varint(8),
            (Self::Tensor, field::DOUBLES) => Element::fixed(8),
            (Self::Attribute, 7) => Element::fixed(4),
            (Self::Attribute, 8) => Element::varint(8),
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Model => size_of::<ModelProto>(),
            Self::Graph => size_of::<GraphProto>(),
            Self::Node => size_of::<NodeProto>(),
            Self::Attribute => size_of::<AttributeProto>(),
            Self::Tensor => size_of::<TensorProto>(),
            Self::Sparse => size_of::<SparseTensorProto>(),
            Self::Function => size_of::<FunctionProto>(),
            Self::ValueInfo => size_of::<ValueInfoProto>(),
            Self::Type => size_of::<TypeProto>(),
            Self::TensorType => size_of::<TensorType>(),
            Self::Shape => size_of::<TensorShapeProto>(),
            Self::Dimension => size_of::<Dimension>(),
            Self::Sequence => size_of::<SequenceType>(),
            Self::Map => size_of::<MapType>(),
            Self::Annotation => size_of::<TensorAnnotation>(),
            Self::OperatorSet => size_of::<OperatorSetIdProto>(),
            Self::Entry => size_of::<StringStringEntryProto>(),
            Self::Text => size_of::<String>(),
        }
    }
}

/// How numbers of a list are written, and what one takes in memory.
#[derive(Clone, Copy)]
struct Element {
    bytes: usize,
    is_varint: bool,
    /// It is no data, but a part of a shape.
    is_extent: bool,
}

impl Element {
    const fn varint(bytes: usize) -> Self {
        Self {
            bytes,
            is_varint: true,
            is_extent: false,
        }
    }

    const fn fixed(bytes: usize) -> Self {
        Self {
            is_varint: false,
            ..Self::varint(bytes)
        }
    }

    const fn extent() -> Self {
        Self {
            is_extent: true,
            ..Self::varint(8)
        }
    }

    fn count(self, body: &[u8]) -> usize {
        if self.is_varint {
            varints(body)
        } else {
            body.len() / self.bytes
        }
    }
}

/// Tags of fields that this module looks at.
const TAGS: usize = 26;

/// What a tensor says of itself, as far as it was read.
#[derive(Default)]
struct Seen<'m> {
    /// The number of elements that its shape has; `None` past 64 bits.
    shape: Option<u64>,
    elements: u64,
    name: &'m [u8],
}

struct Skim<'b> {
    origin: &'b str,
    budget: &'b mut Budget,
}

impl Skim<'_> {
    /// Takes what is in one message.
    fn message(&mut self, kind: Kind, mut message: &[u8], depth: usize) -> Result<(), Stop> {
        if depth == 0 {
            return Err(Stop::Malformed);
        }
        if matches!(kind, Kind::Text) {
            return Ok(());
        }
        // How long each list is so far.
        let mut lists = [0usize; TAGS];
        let mut seen = Seen {
            shape: Some(1),
            ..Seen::default()
        };
        while !message.is_empty() {
            let (tag, wire_type) = decode_key(&mut message).map_err(|_| Stop::Malformed)?;
            let element = kind.element(tag);
            if let (Some(element), true) = (element, wire_type != WireType::LengthDelimited) {
                let start = message;
                skip_field(wire_type, tag, &mut message, DecodeContext::default())
                    .map_err(|_| Stop::Malformed)?;
                let body = &start[..start.len() - message.len()];
                self.elements(element, body, 1, &mut lists[tag as usize], &mut seen)?;
                continue;
            }
            let inner = kind.field(tag);
            let is_name = matches!(kind, Kind::Tensor) && tag == field::NAME;
            if wire_type != WireType::LengthDelimited
                || (inner.is_none() && element.is_none() && !is_name)
            {
                skip_field(wire_type, tag, &mut message, DecodeContext::default())
                    .map_err(|_| Stop::Malformed)?;
                continue;
            }
            let length = decode_varint(&mut message).map_err(|_| Stop::Malformed)?;
            let length = usize::try_from(length).map_err(|_| Stop::Malformed)?;
            // A message that is longer than the file has begun to be decoded when that is noticed.
            let body = message.get(..length).unwrap_or(message);
            if let Some(element) = element {
                let count = element.count(body);
                self.elements(element, body, count, &mut lists[tag as usize], &mut seen)?;
            } else if let Some(inner) = inner {
                let room = match kind.is_single(tag) {
                    true => inner.size() as u64,
                    false => grown(&mut lists[tag as usize], inner.size()),
                };
                self.take(Resource::Nodes, 1)?;
                self.take(Resource::Bytes, room)?;
                self.message(inner, body, depth - 1)?;
            } else {
                seen.name = body;
            }
            message = message.get(length..).ok_or(Stop::Malformed)?;
        }
        if matches!(kind, Kind::Tensor) {
            self.fits(&seen)?;
        }
        Ok(())
    }

    /// Takes a part of a list of numbers.
    fn elements(
        &mut self,
        element: Element,
        body: &[u8],
        count: usize,
        list: &mut usize,
        seen: &mut Seen<'_>,
    ) -> Result<(), Stop> {
        let bytes = count as u64 * element.bytes as u64;
        // The first part gets exactly its room, the others make the list grow. What a file holds as it is in memory costs
        // no more than having sent it.
        let grows = if *list == 0 { bytes } else { bytes * 2 };
        *list += count;
        self.take(Resource::Elements, count as u64)?;
        self.take(Resource::Bytes, grows.saturating_sub(body.len() as u64))?;
        if element.is_extent {
            let mut body = body;
            while !body.is_empty() {
                let extent = decode_varint(&mut body).map_err(|_| Stop::Malformed)?;
                seen.shape = seen.shape.and_then(|shape| shape.checked_mul(extent));
            }
        } else {
            seen.elements += count as u64;
        }
        Ok(())
    }

    /// Refuses a tensor with more elements than any type of its shape has: a complex number is two. Exactly how many there
    /// must be is seen when it is read.
    fn fits(&self, seen: &Seen<'_>) -> Result<(), Stop> {
        let most = seen.shape.map(|shape| shape.saturating_mul(2));
        if most.is_none_or(|most| seen.elements <= most) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(seen.name);
        let detail = format!(
            "tensor {name}: {} elements are stored, and its shape holds {}",
            seen.elements,
            seen.shape.unwrap_or(0)
        );
        Err(EngineError::invalid_model(self.origin, detail).into())
    }

    fn take(&mut self, resource: Resource, amount: u64) -> Result<(), Stop> {
        let place = format_args!("the structure of {}", self.origin);
        Ok(self.budget.take(resource, amount, place)?)
    }
}

/// What a list takes anew when something of `size` is pushed to it: it begins with room for four, or one that is large,
/// and doubles.
fn grown(len: &mut usize, size: usize) -> u64 {
    let first = if size <= 1024 { 4 } else { 1 };
    let room = match *len {
        0 => first,
        len if len >= first && len.is_power_of_two() => len,
        _ => 0,
    };
    *len += 1;
    room as u64 * size as u64
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    /// A message of nothing but `count` empty messages in the field `tag`.
    fn empty(tag: u8, count: usize) -> Vec<u8> {
        [tag << 3 | 2, 0].repeat(count)
    }

    fn wrap(tag: u8, inner: &[u8]) -> Vec<u8> {
        let mut message = vec![tag << 3 | 2];
        prost::encoding::encode_varint(inner.len() as u64, &mut message);
        message.extend_from_slice(inner);
        message
    }

    fn check(file: &[u8]) -> Result<Budget> {
        let mut budget = Budget::for_files(file.len() as u64);
        check_size("test", file, &mut budget)?;
        Ok(budget)
    }

    #[test]
    fn a_small_file_of_many_empty_messages_is_refused() {
        // A graph with one node with more attributes than there is room for.
        let file = wrap(7, &wrap(1, &empty(5, 1 << 20)));
        assert!(file.len() < 4 << 20, "{} bytes", file.len());
        let error = check(&file).unwrap_err();
        assert_eq!(error.kind(), "OverBudget");
        assert!(
            error.to_string().contains("the structure of test"),
            "{error}"
        );
        // The same in a file that ends too soon, where the decoder would notice only at the end.
        assert!(check(&file[..file.len() - 1]).is_err());
        let fewer = wrap(7, &wrap(1, &empty(5, 1000)));
        assert!(check(&fewer).is_ok());
    }

    #[test]
    fn a_lists_room_is_what_it_grows_to() {
        for count in [1, 3, 4, 5, 8, 9, 1000] {
            let mut list: Vec<[u8; 64]> = Vec::new();
            let (mut len, mut room) = (0, 0);
            for _ in 0..count {
                list.push([0; 64]);
                room += grown(&mut len, 64);
            }
            assert_eq!(room, list.capacity() as u64 * 64, "{count}");
        }
    }

    #[test]
    fn more_elements_than_the_shape_has_are_refused_before_they_are_decoded() {
        let packed = |tag, count| wrap(tag, &vec![0; count]);
        for tag in [5, 7, 11, 4, 10] {
            let width = match tag {
                4 => 4,
                10 => 8,
                _ => 1,
            };
            for (count, fits) in [(10, true), (1000, false)] {
                let mut tensor = wrap(1, &[2, 3]);
                tensor.extend(packed(tag, count * width));
                tensor.extend(wrap(8, b"table"));
                let result = check(&wrap(7, &wrap(5, &tensor)));
                match fits {
                    true => drop(result.unwrap()),
                    false => {
                        let message = result.unwrap_err().to_string();
                        assert!(message.contains("tensor table: 1000 elements"), "{message}");
                    }
                }
            }
        }
        // The shape may come behind, and elements one by one.
        let mut tensor = [5 << 3, 0].repeat(9);
        tensor.extend(wrap(1, &[2, 2]));
        assert!(check(&wrap(7, &wrap(5, &tensor))).is_err());
    }

    #[test]
    fn zeros_of_one_byte_cost_what_they_take_in_memory() {
        let count = 1 << 20;
        let mut dims = vec![1 << 3 | 2, 4];
        dims.extend([0x80, 0x80, 0xc0, 0]);
        let mut tensor = dims;
        tensor.extend(wrap(7, &vec![0; count]));
        let file = wrap(7, &wrap(5, &tensor));
        let budget = check(&file).unwrap();
        let expected = count as u64 * 7;
        let bytes = budget.used(Resource::Bytes);
        assert!((expected..expected + 4096).contains(&bytes), "{bytes}");
        assert_eq!(budget.used(Resource::Elements), count as u64 + 1);
    }

    #[test]
    fn every_list_of_the_format_is_counted() {
        // A list that is missing in the table would decode to memory that nobody counted, so
        // each field is decoded, and one that grows must be known.
        fn check<M: Message + Default + PartialEq>(kind: Kind) {
            for tag in 1u8..=15 {
                check_field::<M>(kind, u32::from(tag), &[tag << 3 | 2, 0]);
            }
            for tag in 16u8..=31 {
                check_field::<M>(kind, u32::from(tag), &[(tag << 3 | 2) | 0x80, tag >> 4, 0]);
            }
        }
        fn check_field<M: Message + Default + PartialEq>(kind: Kind, tag: u32, once: &[u8]) {
            let Ok(one) = M::decode(once) else { return };
            let Ok(two) = M::decode(&once.repeat(2)[..]) else {
                return;
            };
            // A list of two empty elements differs from a list of one; nothing else does.
            assert!((tag as usize) < TAGS || kind.field(tag).is_none());
            assert!(
                one == two || kind.field(tag).is_some(),
                "field {tag} is not counted"
            );
        }
        check::<ModelProto>(Kind::Model);
        check::<GraphProto>(Kind::Graph);
        check::<NodeProto>(Kind::Node);
        check::<AttributeProto>(Kind::Attribute);
        check::<TensorProto>(Kind::Tensor);
        check::<SparseTensorProto>(Kind::Sparse);
        check::<FunctionProto>(Kind::Function);
        check::<ValueInfoProto>(Kind::ValueInfo);
        check::<TypeProto>(Kind::Type);
        check::<TensorType>(Kind::TensorType);
        check::<TensorShapeProto>(Kind::Shape);
        check::<Dimension>(Kind::Dimension);
        check::<TensorAnnotation>(Kind::Annotation);
        check::<OperatorSetIdProto>(Kind::OperatorSet);
        check::<StringStringEntryProto>(Kind::Entry);
    }
}
