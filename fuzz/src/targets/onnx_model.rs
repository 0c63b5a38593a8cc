//! ONNX files: read from memory, and read from elsewhere as mapped files are, which is other code for the same format. Both
//! give the same model, or refuse it in the same words.
//!
//! Inputs are a sound model's file that is changed as protobuf: fields are dropped, doubled, moved, given other numbers
//! and contents, and tensors are put wherever the format has room for one. Some are plain bytes.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use arbitrary::{Arbitrary, Unstructured};
use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::content::{ByteSource, Content};
use isovec_engine::onnx::proto::{
    GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightSource;
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::onnx::GraphBuilder;
use prost::Message;
use prost::bytes::Bytes;

use crate::bounds::ours;

/// Tries one input.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let file = match input.arbitrary::<u8>() {
        Ok(0) => input.take_rest().to_vec(),
        _ => changed(&mut input).unwrap_or_default(),
    };
    compare(&file);
}

/// A file that is kept elsewhere, and lent or copied.
#[derive(Debug)]
struct Elsewhere {
    bytes: Bytes,
    lends: bool,
}

impl ByteSource for Elsewhere {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Ok(())
    }

    fn lend(&self, range: Range<usize>) -> Option<Bytes> {
        self.lends.then(|| self.bytes.slice(range))
    }
}

fn compare(file: &[u8]) {
    let bytes = Bytes::copy_from_slice(file);
    let load = |content: Content| {
        let beside = Bytes::from_static(&[7; 4096]);
        let files = [("model.onnx", content), ("beside", beside.into())];
        let files: BTreeMap<String, Content> = files
            .map(|(name, content)| (name.to_owned(), content))
            .into();
        let options = BundleOptions::default();
        ours(file.len(), || {
            bundle::from_contents("fuzz", files, &options)
        })
    };
    let memory = load(bytes.clone().into());
    for lends in [false, true] {
        let bytes = bytes.clone();
        let elsewhere = load(Content::elsewhere(Elsewhere { bytes, lends }));
        match (&memory, &elsewhere) {
            (Ok(one), Ok(other)) => {
                assert_eq!(one.identity, other.identity);
                // By bytes: what is no number is equal to itself.
                assert_eq!(one.graph.encode_to_vec(), other.graph.encode_to_vec());
                assert_eq!(weights(&*one.weights), weights(&*other.weights));
            }
            (Err(one), Err(other)) => assert_eq!(words(one), words(other)),
            (one, other) => panic!("{:?} {:?}", one.as_ref().err(), other.as_ref().err()),
        }
    }
    if let Ok(bundle) = &memory {
        holds_together(bundle);
    }
}

/// What an error says. A damaged message is decoded past its end until that is noticed, so which fault the decoder names first
/// depends on what follows, and of a file that is kept elsewhere other bytes follow: that part is left out.
fn words(error: &EngineError) -> String {
    let all = error.to_string();
    match all.split_once("failed to decode Protobuf message") {
        Some((before, _)) => before.to_owned(),
        None => all,
    }
}

fn weights(source: &dyn WeightSource) -> Vec<(String, Bytes)> {
    let read = |(index, info)| {
        let info: &isovec_engine::weights::WeightInfo = info;
        let read = now(source.read(index)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.len(), info.byte_len());
        (format!("{info:?}"), read)
    };
    source.weights().iter().enumerate().map(read).collect()
}

/// The value of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("what is at hand is read at once"),
    }
}

/// Nothing that an engine is handed says that its data is elsewhere; a tensor is as long as its shape says.
fn holds_together(bundle: &ModelBundle) {
    fn tensor(tensor: &TensorProto) {
        assert_eq!(tensor.data_location, 0);
        assert!(tensor.external_data.is_empty());
    }
    fn graph(inner: &GraphProto) {
        inner.initializer.iter().for_each(tensor);
        for attribute in inner.node.iter().flat_map(|node| &node.attribute) {
            attribute
                .t
                .iter()
                .chain(&attribute.tensors)
                .for_each(tensor);
            attribute.g.iter().chain(&attribute.graphs).for_each(graph);
        }
    }
    bundle.graph.graph.iter().for_each(graph);
    bundle::row_mixer(&bundle.graph);
    bundle::prune(&mut bundle.clone());
}

/// A field of a message.
#[derive(Debug, Clone)]
struct Field {
    tag: u32,
    value: Value,
}

impl Field {
    /// About the bytes that it takes in a file.
    fn size(&self) -> usize {
        2 + match &self.value {
            Value::Varint(_) => 1,
            Value::Fixed32(_) => 4,
            Value::Fixed64(_) => 8,
            Value::Bytes(bytes) => 1 + bytes.len(),
            Value::Message(inner) => 1 + inner.iter().map(Self::size).sum::<usize>(),
        }
    }
}

#[derive(Debug, Clone)]
enum Value {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// Bytes of all copies that are put into a file.
const ROOM: usize = 16 << 10;

/// A file that was sound, changed.
fn changed(input: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let mut fields = parse(&sound(input.arbitrary()?), 0).unwrap_or_default();
    let mut room = ROOM;
    for _ in 0..input.int_in_range(0..=12u8)? {
        change(input, &mut fields, &mut room)?;
    }
    let mut file = Vec::new();
    encode(&fields, &mut file);
    Ok(file)
}

/// A small model with a tensor in each of the usual places, one of them large enough to stay elsewhere.
fn sound(large: bool) -> Vec<u8> {
    let mut graph = GraphProto::default();
    let columns = if large { 1100 } else { 64 };
    graph.initializer.push(TensorProto {
        name: "weight".into(),
        dims: vec![16, columns],
        data_type: 1,
        raw_data: (0..16 * columns)
            .flat_map(|at| (at as f32).to_le_bytes())
            .collect(),
        ..TensorProto::default()
    });
    graph.initializer.push(TensorProto {
        name: "listed".into(),
        dims: vec![3],
        data_type: 7,
        int64_data: vec![1, -2, 300],
        external_data: vec![StringStringEntryProto {
            key: "location".into(),
            value: "beside".into(),
        }],
        ..TensorProto::default()
    });
    let mut builder = GraphBuilder::new(&mut graph, "made.");
    builder.input(
        "x",
        DType::F32,
        &[isovec_engine::description::Dim::Fixed(16)],
    );
    let product = builder.node("MatMul", &["x", "weight"], Vec::new());
    builder.named_node("Identity", &[&product], "y", Vec::new());
    builder.output("y", DType::F32, &[]);
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 17,
        }],
        graph: Some(graph),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

/// Bytes as a message, if they may be one.
fn parse(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let tag = u32::try_from(key >> 3).ok().filter(|&tag| tag > 0)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut bytes)?),
            1 => Value::Fixed64(*bytes.split_off(..8)?.first_chunk()?),
            5 => Value::Fixed32(*bytes.split_off(..4)?.first_chunk()?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let body = bytes.split_off(..length)?;
                // Raw bytes and long texts are left alone.
                let inner = (depth < 12 && (2..60_000).contains(&body.len()))
                    .then(|| parse(body, depth + 1));
                match inner.flatten() {
                    Some(inner) => Value::Message(inner),
                    None => Value::Bytes(body.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push(Field { tag, value });
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn encode(fields: &[Field], out: &mut Vec<u8>) {
    for Field { tag, value } in fields {
        let kind = match value {
            Value::Varint(_) => 0,
            Value::Fixed64(_) => 1,
            Value::Bytes(_) | Value::Message(_) => 2,
            Value::Fixed32(_) => 5,
        };
        write_varint(u64::from(*tag) << 3 | kind, out);
        match value {
            Value::Varint(number) => write_varint(*number, out),
            Value::Fixed32(bytes) => out.extend_from_slice(bytes),
            Value::Fixed64(bytes) => out.extend_from_slice(bytes),
            Value::Bytes(bytes) => {
                write_varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
            Value::Message(inner) => {
                let mut message = Vec::new();
                encode(inner, &mut message);
                write_varint(message.len() as u64, out);
                out.append(&mut message);
            }
        }
    }
}

/// Changes one thing, here or in a message below.
fn change(
    input: &mut Unstructured<'_>,
    fields: &mut Vec<Field>,
    room: &mut usize,
) -> arbitrary::Result<()> {
    if !fields.is_empty() && input.ratio(4, 5)? {
        let at = input.choose_index(fields.len())?;
        if let Value::Message(inner) = &mut fields[at].value {
            return change(input, inner, room);
        }
    }
    if fields.is_empty() || input.ratio(1, 4)? {
        let added = Field {
            tag: input.int_in_range(1..=26)?,
            value: any_value(input)?,
        };
        let at = input.int_in_range(0..=fields.len())?;
        fields.insert(at, added);
        return Ok(());
    }
    let at = input.choose_index(fields.len())?;
    match input.int_in_range(0..=6u8)? {
        0 => drop(fields.remove(at)),
        1 => {
            // A large tensor a thousand times is a large file, not a hostile one; and copies of copies would grow as powers do.
            let times = 1 << input.int_in_range(0..=10u8)?;
            let times = times.min(*room / fields[at].size());
            *room -= times * fields[at].size();
            let copy = fields[at].clone();
            fields.extend(std::iter::repeat_n(copy, times));
        }
        2 => fields[at].tag = input.int_in_range(1..=26)?,
        3 => {
            let other = input.choose_index(fields.len())?;
            fields.swap(at, other);
        }
        4 => {
            let inner = std::mem::take(fields);
            let value = Value::Message(inner);
            fields.push(Field {
                tag: input.int_in_range(1..=26)?,
                value,
            });
        }
        5 if matches!(fields[at].value, Value::Bytes(_)) => {
            if let Value::Bytes(bytes) = &mut fields[at].value {
                let length = input.int_in_range(0..=bytes.len())?;
                bytes.truncate(length);
                bytes.extend_from_slice(input.arbitrary()?);
            }
        }
        _ => fields[at].value = any_value(input)?,
    }
    Ok(())
}

fn any_value(input: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    Ok(match input.int_in_range(0..=6u8)? {
        0 => Value::Varint(*input.choose(&[0, 1, 2, 7, 8, 127, 128, 1 << 31, u64::MAX])?),
        1 => Value::Varint(u64::arbitrary(input)?),
        2 => Value::Fixed32(input.arbitrary()?),
        3 => Value::Fixed64(input.arbitrary()?),
        4 => Value::Bytes(vec![input.arbitrary()?; 1 << input.int_in_range(0..=12u8)?]),
        5 => Value::Bytes(
            input
                .choose(&[
                    &b""[..],
                    b"x",
                    b"weight",
                    b"location",
                    b"beside",
                    b"../beside",
                    b"1",
                ])?
                .to_vec(),
        ),
        _ => Value::Bytes(<&[u8]>::arbitrary(input)?.to_vec()),
    })
}
