//! State dicts as `torch.save` writes them (<https://github.com/pytorch/pytorch>, `torch/serialization.py`): a zip archive of stored
//! entries with a pickle of protocol 2. The same bytes on every run.

use half::{bf16, f16};

use crate::checkpoint::{Array, Stored};

/// Contents of storages begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// The file of a layer's tensors, each in a storage of its own.
pub fn state_dict(folder: &str, tensors: &[(&str, &Array)], stored: Stored) -> Vec<u8> {
    let mut entries = vec![
        ("data.pkl".to_owned(), pickle(tensors, stored)),
        ("byteorder".to_owned(), b"little".to_vec()),
    ];
    for (key, (_, array)) in tensors.iter().enumerate() {
        entries.push((format!("data/{key}"), elements(array, stored)));
    }
    entries.push(("version".to_owned(), b"3\n".to_vec()));
    let entries: Vec<(String, Vec<u8>)> = entries
        .into_iter()
        .map(|(name, content)| (format!("{folder}/{name}"), content))
        .collect();
    archive(&entries)
}

/// A zip archive of stored entries.
pub fn archive(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let at = file.len();
        let begin = at + 30 + name.len() + 4;
        let padding = begin.next_multiple_of(ALIGNMENT) - begin;
        let sizes = [
            checksum(content),
            content.len() as u32,
            content.len() as u32,
        ];
        file.extend(0x0403_4b50_u32.to_le_bytes());
        shorts(&mut file, &[0, 0x0800, 0, 0, 0]);
        longs(&mut file, &sizes);
        shorts(&mut file, &[name.len() as u16, 4 + padding as u16]);
        file.extend(name.as_bytes());
        file.extend(b"FB");
        shorts(&mut file, &[padding as u16]);
        file.extend(vec![b'Z'; padding]);
        file.extend(content);
        list.extend(0x0201_4b50_u32.to_le_bytes());
        shorts(&mut list, &[0, 0, 0x0800, 0, 0, 0]);
        longs(&mut list, &sizes);
        shorts(&mut list, &[name.len() as u16, 0, 0, 0, 0]);
        longs(&mut list, &[0, at as u32]);
        list.extend(name.as_bytes());
    }
    let (start, size, count) = (file.len(), list.len(), entries.len());
    file.extend(list);
    let end = file.len();
    // The records of large archives, which PyTorch writes for every archive.
    longs(&mut file, &[0x0606_4b50, 44, 0]);
    shorts(&mut file, &[0x031e, 45]);
    longs(
        &mut file,
        &[
            0,
            0,
            count as u32,
            0,
            count as u32,
            0,
            size as u32,
            0,
            start as u32,
            0,
        ],
    );
    longs(&mut file, &[0x0706_4b50, 0, end as u32, 0, 1]);
    longs(&mut file, &[0x0605_4b50]);
    shorts(&mut file, &[0, 0, count as u16, count as u16]);
    longs(&mut file, &[size as u32, start as u32]);
    shorts(&mut file, &[0]);
    file
}

fn shorts(file: &mut Vec<u8>, values: &[u16]) {
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn longs(file: &mut Vec<u8>, values: &[u32]) {
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn elements(array: &Array, stored: Stored) -> Vec<u8> {
    let values = array.values.iter();
    match stored {
        Stored::F64 => values.flat_map(|&x| f64::from(x).to_le_bytes()).collect(),
        Stored::F32 => values.flat_map(|x| x.to_le_bytes()).collect(),
        Stored::F16 => values
            .flat_map(|&x| f16::from_f32(x).to_le_bytes())
            .collect(),
        Stored::BF16 => values
            .flat_map(|&x| bf16::from_f32(x).to_le_bytes())
            .collect(),
    }
}

/// The pickle, as Python's `pickletools.optimize` leaves it: nothing is remembered that is not used again.
fn pickle(tensors: &[(&str, &Array)], stored: Stored) -> Vec<u8> {
    let class = match stored {
        Stored::F64 => "DoubleStorage",
        Stored::F32 => "FloatStorage",
        Stored::F16 => "HalfStorage",
        Stored::BF16 => "BFloat16Storage",
    };
    let dictionary = b"ccollections\nOrderedDict\n)R";
    let mut pickle = b"\x80\x02".to_vec();
    pickle.extend(dictionary);
    pickle.push(b'(');
    for (key, (name, array)) in tensors.iter().enumerate() {
        text(&mut pickle, name);
        pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        text(&mut pickle, "storage");
        pickle.extend(format!("ctorch\n{class}\n").as_bytes());
        text(&mut pickle, &key.to_string());
        text(&mut pickle, "cpu");
        number(&mut pickle, array.values.len());
        pickle.extend(b"tQK\x00(");
        for &extent in &array.shape {
            number(&mut pickle, extent);
        }
        pickle.extend(b"t(");
        for at in 0..array.shape.len() {
            number(&mut pickle, array.shape[at + 1..].iter().product());
        }
        pickle.extend(b"t\x89");
        pickle.extend(dictionary);
        pickle.extend(b"tR");
    }
    pickle.extend(b"u}");
    text(&mut pickle, "_metadata");
    pickle.extend(dictionary);
    text(&mut pickle, "");
    pickle.push(b'}');
    text(&mut pickle, "version");
    pickle.extend(b"K\x01sssb.");
    pickle
}

fn text(pickle: &mut Vec<u8>, text: &str) {
    pickle.push(b'X');
    pickle.extend((text.len() as u32).to_le_bytes());
    pickle.extend(text.as_bytes());
}

fn number(pickle: &mut Vec<u8>, number: usize) {
    match number {
        0..=0xff => pickle.extend([b'K', number as u8]),
        0x100..=0xffff => {
            pickle.push(b'M');
            pickle.extend((number as u16).to_le_bytes());
        }
        _ => {
            pickle.push(b'J');
            pickle.extend((number as u32).to_le_bytes());
        }
    }
}

/// CRC-32 by the polynomial's division, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let mut rest = !0u32;
    for byte in bytes {
        rest ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = rest & 1;
            rest >>= 1;
            if carry == 1 {
                rest ^= 0xedb8_8320;
            }
        }
    }
    !rest
}
