//! How much memory a file's structure will take, counted before any of it is taken.
//!
//! Two bytes of protobuf can stand for a message whose Rust type has more than a thousand, so a
//! small hostile file could ask for more memory than there is, and running out of memory is not
//! an error that anybody can catch. Raw tensor bytes are not counted: they stay in the file.

use std::mem::size_of;

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::proto::{
    AttributeProto, Dimension, FunctionProto, GraphProto, MapType, ModelProto, NodeProto,
    OperatorSetIdProto, SequenceType, SparseTensorProto, StringStringEntryProto, TensorAnnotation,
    TensorProto, TensorShapeProto, TensorType, TypeProto, ValueInfoProto,
};

/// What a file's messages may take together. A language model of 100,000 nodes stays below it.
const MAX_STRUCTURE_BYTES: usize = 512 << 20;

/// Nesting at which the decoder gives up.
const MAX_DEPTH: usize = 100;

/// Fails when the messages of an ONNX file would take more memory than any sensible model's. A
/// file that is not well formed passes: decoding it stops at the same place, with better words.
pub(super) fn check_size(file: &[u8]) -> Result<(), String> {
    let mut left = MAX_STRUCTURE_BYTES;
    match count(Kind::Model, file, MAX_DEPTH, &mut left) {
        Err(Stop::TooLarge) => Err(format!(
            "its structure, the tensors not counted, takes more than {MAX_STRUCTURE_BYTES} bytes"
        )),
        Ok(()) | Err(Stop::Malformed) => Ok(()),
    }
}

enum Stop {
    TooLarge,
    Malformed,
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

/// Takes the size of one message and of all in it from what is left.
fn count(kind: Kind, mut message: &[u8], depth: usize, left: &mut usize) -> Result<(), Stop> {
    *left = left.checked_sub(kind.size()).ok_or(Stop::TooLarge)?;
    if depth == 0 {
        return Err(Stop::Malformed);
    }
    if matches!(kind, Kind::Text) {
        return Ok(());
    }
    while !message.is_empty() {
        let (tag, wire_type) = decode_key(&mut message).map_err(|_| Stop::Malformed)?;
        let Some(field) = kind
            .field(tag)
            .filter(|_| wire_type == WireType::LengthDelimited)
        else {
            skip_field(wire_type, tag, &mut message, DecodeContext::default())
                .map_err(|_| Stop::Malformed)?;
            continue;
        };
        let length = decode_varint(&mut message).map_err(|_| Stop::Malformed)?;
        let length = usize::try_from(length).map_err(|_| Stop::Malformed)?;
        // A message that is longer than the file has begun to be decoded when that is noticed.
        let inner = message.get(..length).unwrap_or(message);
        count(field, inner, depth - 1, left)?;
        message = message.get(length..).ok_or(Stop::Malformed)?;
    }
    Ok(())
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

    #[test]
    fn a_small_file_of_many_empty_messages_is_refused() {
        // A graph with one node with more attributes than the limit has room for.
        let attributes = MAX_STRUCTURE_BYTES / size_of::<AttributeProto>() + 1;
        let file = wrap(7, &wrap(1, &empty(5, attributes)));
        assert!(file.len() < 4 << 20, "{} bytes", file.len());
        assert!(check_size(&file).unwrap_err().contains("structure"));
        // The same in a file that ends too soon, where the decoder would notice only at the end.
        assert!(check_size(&file[..file.len() - 1]).is_err());
        let fewer = wrap(7, &wrap(1, &empty(5, 1000)));
        assert!(check_size(&fewer).is_ok());
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
