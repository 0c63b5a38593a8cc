//! A tensor in its form in the file. This message is written by hand, and the others are derived. Here a packed list
//! of numbers takes only the memory of its elements. A derived list grows by doubling, which takes 24 bytes for each
//! element of one byte in the file.

#![allow(missing_docs)] // The format's own documentation is the reference.

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{
    self, DecodeContext, WireType, decode_varint, double, float, int32, int64, message, skip_field,
    string, uint64,
};
use prost::{DecodeError, Message};

use super::proto::StringStringEntryProto;

/// Field numbers of a tensor in `onnx.proto`.
pub mod field {
    pub const DIMS: u32 = 1;
    pub const DATA_TYPE: u32 = 2;
    pub const FLOATS: u32 = 4;
    pub const INT32S: u32 = 5;
    pub const STRINGS: u32 = 6;
    pub const INT64S: u32 = 7;
    pub const NAME: u32 = 8;
    pub const RAW: u32 = 9;
    pub const DOUBLES: u32 = 10;
    pub const UINT64S: u32 = 11;
    pub const DOC: u32 = 12;
    pub const EXTERNAL: u32 = 13;
    pub const LOCATION: u32 = 14;
    pub const METADATA: u32 = 16;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorProto {
    pub dims: Vec<i64>,
    pub data_type: i32,
    pub float_data: Vec<f32>,
    pub int32_data: Vec<i32>,
    pub string_data: Vec<Vec<u8>>,
    pub int64_data: Vec<i64>,
    pub name: String,
    pub doc_string: String,
    pub raw_data: Bytes,
    pub double_data: Vec<f64>,
    pub uint64_data: Vec<u64>,
    pub external_data: Vec<StringStringEntryProto>,
    pub data_location: i32,
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// Numbers that a body of packed varints holds.
pub fn varints(body: &[u8]) -> usize {
    body.iter().filter(|&&byte| byte < 0x80).count()
}

/// Makes room for a packed list at once. Of one that comes in many fields only the first is so: room for the others grows
/// as for any list, or a million short fields would move what is there a million times.
fn reserve<T>(
    values: &mut Vec<T>,
    wire_type: WireType,
    buf: &impl Buf,
    count: impl Fn(&[u8]) -> usize,
) {
    if wire_type != WireType::LengthDelimited || !values.is_empty() {
        return;
    }
    let mut ahead = buf.chunk();
    let length = decode_varint(&mut ahead).ok();
    let length = length.and_then(|length| usize::try_from(length).ok());
    if let Some(body) = length.and_then(|length| ahead.get(..length)) {
        values.reserve_exact(count(body));
    }
}

impl Message for TensorProto {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        int64::encode_packed(field::DIMS, &self.dims, buf);
        if self.data_type != 0 {
            int32::encode(field::DATA_TYPE, &self.data_type, buf);
        }
        float::encode_packed(field::FLOATS, &self.float_data, buf);
        int32::encode_packed(field::INT32S, &self.int32_data, buf);
        encoding::bytes::encode_repeated(field::STRINGS, &self.string_data, buf);
        int64::encode_packed(field::INT64S, &self.int64_data, buf);
        if !self.name.is_empty() {
            string::encode(field::NAME, &self.name, buf);
        }
        if !self.raw_data.is_empty() {
            encoding::bytes::encode(field::RAW, &self.raw_data, buf);
        }
        double::encode_packed(field::DOUBLES, &self.double_data, buf);
        uint64::encode_packed(field::UINT64S, &self.uint64_data, buf);
        if !self.doc_string.is_empty() {
            string::encode(field::DOC, &self.doc_string, buf);
        }
        message::encode_repeated(field::EXTERNAL, &self.external_data, buf);
        if self.data_location != 0 {
            int32::encode(field::LOCATION, &self.data_location, buf);
        }
        message::encode_repeated(field::METADATA, &self.metadata_props, buf);
    }

    fn encoded_len(&self) -> usize {
        let text = |tag, text: &String| match text.is_empty() {
            true => 0,
            false => string::encoded_len(tag, text),
        };
        let number = |tag, number: &i32| match *number {
            0 => 0,
            _ => int32::encoded_len(tag, number),
        };
        let raw = match self.raw_data.is_empty() {
            true => 0,
            false => encoding::bytes::encoded_len(field::RAW, &self.raw_data),
        };
        int64::encoded_len_packed(field::DIMS, &self.dims)
            + number(field::DATA_TYPE, &self.data_type)
            + float::encoded_len_packed(field::FLOATS, &self.float_data)
            + int32::encoded_len_packed(field::INT32S, &self.int32_data)
            + encoding::bytes::encoded_len_repeated(field::STRINGS, &self.string_data)
            + int64::encoded_len_packed(field::INT64S, &self.int64_data)
            + text(field::NAME, &self.name)
            + raw
            + double::encoded_len_packed(field::DOUBLES, &self.double_data)
            + uint64::encoded_len_packed(field::UINT64S, &self.uint64_data)
            + text(field::DOC, &self.doc_string)
            + message::encoded_len_repeated(field::EXTERNAL, &self.external_data)
            + number(field::LOCATION, &self.data_location)
            + message::encoded_len_repeated(field::METADATA, &self.metadata_props)
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let (name, merged) = match tag {
            field::DIMS => {
                reserve(&mut self.dims, wire_type, buf, varints);
                let merged = int64::merge_repeated(wire_type, &mut self.dims, buf, ctx);
                ("dims", merged)
            }
            field::DATA_TYPE => {
                let merged = int32::merge(wire_type, &mut self.data_type, buf, ctx);
                ("data_type", merged)
            }
            field::FLOATS => {
                reserve(&mut self.float_data, wire_type, buf, |body| body.len() / 4);
                let merged = float::merge_repeated(wire_type, &mut self.float_data, buf, ctx);
                ("float_data", merged)
            }
            field::INT32S => {
                reserve(&mut self.int32_data, wire_type, buf, varints);
                let merged = int32::merge_repeated(wire_type, &mut self.int32_data, buf, ctx);
                ("int32_data", merged)
            }
            field::STRINGS => {
                let list = &mut self.string_data;
                let merged = encoding::bytes::merge_repeated(wire_type, list, buf, ctx);
                ("string_data", merged)
            }
            field::INT64S => {
                reserve(&mut self.int64_data, wire_type, buf, varints);
                let merged = int64::merge_repeated(wire_type, &mut self.int64_data, buf, ctx);
                ("int64_data", merged)
            }
            field::NAME => {
                let merged = string::merge(wire_type, &mut self.name, buf, ctx);
                ("name", merged)
            }
            field::RAW => {
                let merged = encoding::bytes::merge(wire_type, &mut self.raw_data, buf, ctx);
                ("raw_data", merged)
            }
            field::DOUBLES => {
                reserve(&mut self.double_data, wire_type, buf, |body| body.len() / 8);
                let merged = double::merge_repeated(wire_type, &mut self.double_data, buf, ctx);
                ("double_data", merged)
            }
            field::UINT64S => {
                reserve(&mut self.uint64_data, wire_type, buf, varints);
                let merged = uint64::merge_repeated(wire_type, &mut self.uint64_data, buf, ctx);
                ("uint64_data", merged)
            }
            field::DOC => {
                let merged = string::merge(wire_type, &mut self.doc_string, buf, ctx);
                ("doc_string", merged)
            }
            field::EXTERNAL => {
                let merged = message::merge_repeated(wire_type, &mut self.external_data, buf, ctx);
                ("external_data", merged)
            }
            field::LOCATION => {
                let merged = int32::merge(wire_type, &mut self.data_location, buf, ctx);
                ("data_location", merged)
            }
            field::METADATA => {
                let merged = message::merge_repeated(wire_type, &mut self.metadata_props, buf, ctx);
                ("metadata_props", merged)
            }
            _ => return skip_field(wire_type, tag, buf, ctx),
        };
        merged.map_err(|mut error| {
            error.push("TensorProto", name);
            error
        })
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same message as the derive makes it.
    #[derive(Clone, PartialEq, Message)]
    struct Derived {
        #[prost(int64, repeated, tag = "1")]
        dims: Vec<i64>,
        #[prost(int32, tag = "2")]
        data_type: i32,
        #[prost(float, repeated, tag = "4")]
        float_data: Vec<f32>,
        #[prost(int32, repeated, tag = "5")]
        int32_data: Vec<i32>,
        #[prost(bytes = "vec", repeated, tag = "6")]
        string_data: Vec<Vec<u8>>,
        #[prost(int64, repeated, tag = "7")]
        int64_data: Vec<i64>,
        #[prost(string, tag = "8")]
        name: String,
        #[prost(string, tag = "12")]
        doc_string: String,
        #[prost(bytes = "bytes", tag = "9")]
        raw_data: Bytes,
        #[prost(double, repeated, tag = "10")]
        double_data: Vec<f64>,
        #[prost(uint64, repeated, tag = "11")]
        uint64_data: Vec<u64>,
        #[prost(message, repeated, tag = "13")]
        external_data: Vec<StringStringEntryProto>,
        #[prost(int32, tag = "14")]
        data_location: i32,
        #[prost(message, repeated, tag = "16")]
        metadata_props: Vec<StringStringEntryProto>,
    }

    fn full() -> Derived {
        let entry = |key: &str| StringStringEntryProto {
            key: key.into(),
            value: "value".into(),
        };
        Derived {
            dims: vec![2, -3, 1 << 40],
            data_type: 7,
            float_data: vec![1.5, -2.0],
            int32_data: vec![-1, 300],
            string_data: vec![b"one".to_vec(), Vec::new()],
            int64_data: vec![i64::MIN, 0, 127, 128],
            name: "name".into(),
            doc_string: "doc".into(),
            raw_data: Bytes::from_static(b"raw"),
            double_data: vec![0.25],
            uint64_data: vec![u64::MAX, 5],
            external_data: vec![entry("location"), entry("offset")],
            data_location: 1,
            metadata_props: vec![entry("more")],
        }
    }

    #[test]
    fn it_is_what_the_derive_would_make() {
        for derived in [full(), Derived::default()] {
            let bytes = derived.encode_to_vec();
            let ours = TensorProto::decode(&bytes[..]).unwrap();
            assert_eq!(ours.encoded_len(), bytes.len());
            let back = Derived::decode(&ours.encode_to_vec()[..]).unwrap();
            assert_eq!(back, derived);
            // Damaged anywhere: the same, or refused by both in the same words.
            for at in 0..bytes.len() {
                for to in [0, 1, 0x0a, 0x3a, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] = to;
                    let one = Derived::decode(&damaged[..]).map(|message| message.encode_to_vec());
                    let other = TensorProto::decode(&damaged[..]);
                    let other = other.map(|message| {
                        Derived::decode(&message.encode_to_vec()[..])
                            .unwrap()
                            .encode_to_vec()
                    });
                    let words =
                        |error: DecodeError| error.to_string().replace("Derived", "TensorProto");
                    assert_eq!(one.map_err(words), other.map_err(words), "{at} {to}");
                }
            }
        }
    }

    #[test]
    fn packed_elements_take_their_own_memory_and_no_more() {
        let count = 100_001;
        let zeros = TensorProto {
            int64_data: vec![0; count],
            int32_data: vec![0; count],
            uint64_data: vec![0; count],
            float_data: vec![0.0; count],
            double_data: vec![0.0; count],
            dims: vec![0; count],
            ..TensorProto::default()
        };
        let read = TensorProto::decode(&zeros.encode_to_vec()[..]).unwrap();
        assert_eq!(read, zeros);
        for capacity in [
            read.int64_data.capacity(),
            read.int32_data.capacity(),
            read.uint64_data.capacity(),
            read.float_data.capacity(),
            read.double_data.capacity(),
            read.dims.capacity(),
        ] {
            assert_eq!(capacity, count);
        }
    }
}
