//! Safetensors files, against the reference implementation, the crate `safetensors`.
//!
//! If isovec reads a file, the crate reads it and finds the same tensors. If the crate reads a file, isovec reads it,
//! or refuses it for one of the reasons that our reader's documentation has: an element type that no checkpoint has,
//! and a name that occurs twice.

use arbitrary::Unstructured;
use isovec_model::safetensors::TensorSet;
use safetensors::SafeTensors;

use crate::bounds::ours;

/// Tries one input.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    match input.arbitrary::<u8>() {
        Ok(0) => compare(input.take_rest()),
        _ => {
            if let Ok(file) = made(&mut input) {
                compare(&file);
            }
        }
    }
}

fn compare(file: &[u8]) {
    let files = vec![("file".to_owned(), file.to_vec().into())];
    let found = ours(file.len(), || TensorSet::from_files("fuzz", files));
    if reaches_far(file) {
        // There the reference adds without looking.
        assert!(found.is_err());
        return;
    }
    match (found, SafeTensors::deserialize(file)) {
        (Ok(found), Ok(expected)) => {
            let mut names = expected.names();
            names.sort_unstable();
            assert_eq!(found.names().collect::<Vec<_>>(), names);
            for name in names {
                let (one, other) = (found.get(name).unwrap(), expected.tensor(name).unwrap());
                assert_eq!(one.shape, other.shape());
                assert_eq!(one.dtype.name(), format!("{:?}", other.dtype()));
                assert_eq!(one.data.bytes().unwrap(), other.data());
            }
            found.identity().unwrap();
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("the reference refuses it: {error}"),
        (Err(error), Ok(_)) => {
            let message = error.to_string();
            let known = error.kind() == "UnsupportedModel"
                || ["twice", "is also in", "expected a string"]
                    .iter()
                    .any(|reason| message.contains(reason));
            assert!(known, "the reference reads it: {error}");
        }
    }
}

/// Whether a header has a number past the file's end by far.
fn reaches_far(file: &[u8]) -> bool {
    let digits = |byte: &u8| byte.is_ascii_digit();
    file.chunk_by(|a, b| digits(a) && digits(b))
        .any(|run| run.len() > 15)
}

/// A file with a header that may be right.
fn made(input: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let mut entries = Vec::new();
    let mut end = 0u64;
    for _ in 0..input.int_in_range(0..=6u8)? {
        let name = *input.choose(&["a", "b", "tensor.weight", "", "__metadata__", "\\u0061"])?;
        if input.ratio(1, 12)? {
            let value = *input.choose(&["{}", "{\"format\":\"pt\"}", "null", "7", "{\"a\":1}"])?;
            entries.push(format!("\"__metadata__\":{value}"));
            continue;
        }
        let (dtype, size) = *input.choose(&[
            ("F32", 4u64),
            ("F16", 2),
            ("BF16", 2),
            ("I64", 8),
            ("U8", 1),
            ("BOOL", 1),
            ("F64", 8),
            ("U32", 4),
            ("F8_E4M3", 1),
            ("X", 1),
        ])?;
        let shape: Vec<u64> = (0..input.int_in_range(0..=3u8)?)
            .map(|_| input.int_in_range(0..=4u64))
            .collect::<arbitrary::Result<_>>()?;
        let mut bytes = shape.iter().product::<u64>() * size;
        let mut from = end;
        if input.ratio(1, 10)? {
            bytes = input.int_in_range(0..=200)?;
        }
        if input.ratio(1, 10)? {
            from = input.int_in_range(0..=200)?;
        }
        end = from + bytes;
        let more = *input.choose(&["", "", "", ",\"more\":[1,{}]", ",\"dtype\":\"F32\""])?;
        entries.push(format!(
            "\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{from},{end}]{more}}}"
        ));
    }
    let order = input.arbitrary::<bool>()?;
    if order {
        entries.reverse();
    }
    let space = *input.choose(&["", "", " ", "\n"])?;
    let header = format!("{space}{{{}}}{space}", entries.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    let data = usize::try_from(end).unwrap_or(0).min(4096);
    file.resize(file.len() + data, 3);
    if input.ratio(1, 10)? {
        let length = input.int_in_range(0..=file.len())?;
        file.truncate(length);
    }
    for _ in 0..input.int_in_range(0..=2u8)? {
        if !file.is_empty() {
            let at = input.choose_index(file.len())?;
            file[at] = input.arbitrary()?;
        }
    }
    Ok(file)
}
