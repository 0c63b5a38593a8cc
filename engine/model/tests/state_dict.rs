//! State dicts of PyTorch: what is written is read, and whatever is damaged or holds anything else is refused by its name.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::collections::HashMap;

use isovec_model::state_dict::{FloatTensor, read_state_dict};
use isovec_test_models::checkpoint::{Array, Stored};
use isovec_test_models::rng::Rng;
use isovec_test_models::torch_file::{archive, state_dict};

/// The pickle of a layer of three inputs and two outputs in f16, made by CPython's `pickle` of protocol 2 from objects that reduce as
/// PyTorch's do. It remembers values and recalls them.
const OF_CPYTHON: &[u8] = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(X\x06\x00\x00\x00weightq\x02ctorch._utils\n\
_rebuild_tensor_v2\nq\x03((X\x07\x00\x00\x00storageq\x04ctorch\nHalfStorage\nq\x05X\x01\x00\x00\x000q\x06X\x03\x00\x00\x00cpuq\x07\
K\x06tq\x08QK\x00K\x02K\x03\x86q\tK\x03K\x01\x86q\n\x89h\x00)Rq\x0btq\x0cRq\rX\x04\x00\x00\x00biasq\x0eh\x03((h\x04h\x05\
X\x01\x00\x00\x001q\x0fh\x07K\x02tq\x10QK\x00K\x02\x85q\x11K\x01\x85q\x12\x89h\x00)Rq\x13tq\x14Rq\x15u}q\x16X\t\x00\x00\x00\
_metadataq\x17h\x00)Rq\x18X\x00\x00\x00\x00q\x19}q\x1aX\x07\x00\x00\x00versionq\x1bK\x01sssb.";

fn layer() -> [Array; 2] {
    let weight = Array {
        shape: vec![2, 3],
        values: vec![0.5, -1.0, 2.0, 0.25, 0.0, -8.0],
    };
    let bias = Array {
        shape: vec![2],
        values: vec![1.5, -0.125],
    };
    [weight, bias]
}

fn file(stored: Stored) -> Vec<u8> {
    let [weight, bias] = layer();
    state_dict("layer", &[("weight", &weight), ("bias", &bias)], stored)
}

/// An archive of these entries in one folder.
fn with(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let entries = entries
        .iter()
        .map(|(name, content)| (format!("a/{name}"), content.to_vec()));
    archive(&entries.collect::<Vec<_>>())
}

/// One whose pickle this is, with two storages of f16.
fn pickled(pickle: &[u8]) -> Vec<u8> {
    with(&[
        ("data.pkl", pickle),
        ("data/0", &[0; 12]),
        ("data/1", &[0; 4]),
    ])
}

#[track_caller]
fn refused(file: &[u8], kind: &str, word: &str) {
    let error = read_state_dict("a file", file).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains("a file") && text.contains(word), "{text}");
}

#[test]
fn tensors_of_every_type_of_floats_are_read() {
    let [weight, bias] = layer();
    for stored in [Stored::F32, Stored::F16, Stored::BF16] {
        let read = read_state_dict("a file", &file(stored)).unwrap();
        let own = |array: &Array| FloatTensor {
            shape: array.shape.clone(),
            values: array.values.clone(),
        };
        let wanted = [
            ("weight".to_owned(), own(&weight)),
            ("bias".to_owned(), own(&bias)),
        ];
        assert_eq!(read, HashMap::from(wanted), "{stored:?}");
    }
    refused(
        &file(Stored::F64),
        "UnsupportedModel",
        "torch.DoubleStorage",
    );
}

#[test]
fn a_pickle_of_cpython_is_read() {
    let half = |values: &[f32]| -> Vec<u8> {
        let halves = values.iter().map(|&value| half::f16::from_f32(value));
        halves.flat_map(half::f16::to_le_bytes).collect()
    };
    let [weight, bias] = layer();
    let entries = [
        ("data.pkl", OF_CPYTHON),
        ("data/0", &half(&weight.values)),
        ("data/1", &half(&bias.values)),
    ];
    let read = read_state_dict("a file", &with(&entries)).unwrap();
    assert_eq!(read["weight"].values, weight.values);
    assert_eq!(read["weight"].shape, [2, 3]);
    assert_eq!(read["bias"].values, bias.values);
}

#[test]
fn a_file_that_is_cut_short_anywhere_is_refused() {
    let whole = file(Stored::F16);
    for length in 0..whole.len() {
        let error = read_state_dict("a file", &whole[..length]).unwrap_err();
        assert!(
            ["InvalidModel", "UnsupportedModel"].contains(&error.kind()),
            "{length}: {error}"
        );
    }
    // The pickle alone, in an archive that is whole.
    for length in 0..OF_CPYTHON.len() {
        assert!(
            read_state_dict("a file", &pickled(&OF_CPYTHON[..length])).is_err(),
            "{length}"
        );
    }
    let mut longer = whole;
    longer.push(0);
    refused(&longer, "InvalidModel", "behind it");
}

#[test]
fn a_changed_byte_changes_nothing_or_is_refused() {
    let whole = file(Stored::F16);
    let wanted = read_state_dict("a file", &whole).unwrap();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            if let Ok(read) = read_state_dict("a file", &changed) {
                assert_eq!(read, wanted, "bit {bit} of byte {at}");
            }
        }
    }
}

/// Whatever a pickle says, reading it ends, without a panic.
#[test]
fn pickles_at_random_end() {
    let mut rng = Rng::new(1);
    let operations = b"\x80\x02.(KMJXc)\x85\x86\x87t}suqrhjQRb\x88\x89";
    let mut at = |below: usize| rng.below(below as u64) as usize;
    for _ in 0..20_000 {
        let mut pickle = OF_CPYTHON.to_vec();
        for _ in 0..1 + at(4) {
            let place = at(pickle.len());
            match at(3) {
                0 => pickle[place] = operations[at(operations.len())],
                1 => pickle.insert(place, operations[at(operations.len())]),
                _ => drop(pickle.remove(place)),
            }
        }
        let _ = read_state_dict("a file", &pickled(&pickle));
    }
}

#[test]
fn everything_else_in_a_pickle_is_refused_by_its_name() {
    let replaced = |from: &str, to: &str| {
        let text: String = OF_CPYTHON.iter().map(|&byte| char::from(byte)).collect();
        assert!(text.contains(from));
        let text = text.replacen(from, to, 1);
        pickled(&text.chars().map(|c| c as u8).collect::<Vec<u8>>())
    };
    let unsupported = "UnsupportedModel";
    refused(
        &pickled(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."),
        unsupported,
        "os.system",
    );
    refused(
        &replaced("HalfStorage", "LongStorage"),
        unsupported,
        "torch.LongStorage",
    );
    refused(
        &replaced("_rebuild_tensor_v2", "_rebuild_parameter"),
        unsupported,
        "torch._utils._rebuild_parameter",
    );
    refused(&pickled(b"\x80\x04."), unsupported, "protocol 4");
    refused(&pickled(b"\x80\x02]."), unsupported, "0x5d");
    refused(&pickled(b"\x80\x02K\x01."), unsupported, "no dictionary");
    refused(
        &pickled(b"\x80\x02}X\x01\x00\x00\x00aK\x01s."),
        unsupported,
        "\"a\" is no tensor",
    );
    refused(
        &replaced("_metadata", "_meta_ata"),
        unsupported,
        "_meta_ata",
    );
    // A transposed weight.
    refused(
        &replaced("K\x03K\x01\u{86}", "K\x01K\x02\u{86}"),
        unsupported,
        "not contiguous",
    );
    refused(
        &replaced("K\x00K\x02K\x03\u{86}", "K\x01K\x02K\x03\u{86}"),
        "InvalidModel",
        "does not fit",
    );
    refused(
        &replaced("K\x00K\x02K\x03\u{86}", "K\x00K\x02K\x02\u{86}"),
        unsupported,
        "not contiguous",
    );
    refused(
        &replaced("K\x06t", "K\x07t"),
        "InvalidModel",
        "storage of weight",
    );
    let nested = [
        b"\x80\x02".as_slice(),
        &[b'}'; 2],
        &b"X\x01\x00\x00\x00a}".repeat(9),
        &[b's'; 9],
        b".",
    ]
    .concat();
    refused(&pickled(&nested), unsupported, "nested deeper");
}

#[test]
fn archives_of_another_kind_are_refused() {
    let (storage, bias) = ([0u8; 12], [0u8; 4]);
    let whole = |pickle: &'static str, order: &'static [u8]| {
        with(&[
            (pickle, OF_CPYTHON),
            ("byteorder", order),
            ("data/0", &storage),
            ("data/1", &bias),
        ])
    };
    assert!(read_state_dict("a file", &whole("data.pkl", b"little")).is_ok());
    refused(&whole("data.pkl", b"big"), "UnsupportedModel", "big");
    refused(&whole("code.pkl", b"little"), "InvalidModel", "data.pkl");
    refused(
        &with(&[("data.pkl", OF_CPYTHON), ("data/0", &storage)]),
        "InvalidModel",
        "a/data/1",
    );
    let twice = with(&[("data.pkl", OF_CPYTHON), ("data.pkl", OF_CPYTHON)]);
    refused(&twice, "InvalidModel", "twice");
    refused(
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
        "UnsupportedModel",
        "no zip archive",
    );
    refused(b"", "UnsupportedModel", "no zip archive");
    let long = vec![b'K'; (1 << 20) + 1];
    refused(&pickled(&long), "UnsupportedModel", "past the limit");
    let find = |file: &[u8], what: u32| {
        let what = what.to_le_bytes();
        file.windows(4).position(|four| four == what).unwrap()
    };
    let mut compressed = pickled(OF_CPYTHON);
    let listed = find(&compressed, 0x0201_4b50);
    compressed[listed + 10] = 8;
    refused(&compressed, "UnsupportedModel", "compressed");
    let mut encrypted = pickled(OF_CPYTHON);
    encrypted[listed + 8] |= 1;
    refused(&encrypted, "UnsupportedModel", "encrypted");
    let mut damaged = pickled(OF_CPYTHON);
    let local = find(&damaged, 0x0403_4b50);
    damaged[local + 64] ^= 1;
    refused(&damaged, "InvalidModel", "checksum");
}
