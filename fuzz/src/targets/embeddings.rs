//! Saved sets of vectors: what was written is read as the same, and what was damaged is refused, or is what the crate
//! `safetensors` finds in the file.

use arbitrary::Unstructured;
use isovec::Embeddings;
use isovec::fingerprint::Fingerprint;
use safetensors::SafeTensors;

use crate::bounds::ours;

/// Tries one input: a file as it is, or a set that is written and damaged.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    if input.arbitrary().unwrap_or(true) {
        let file = data.get(1..).unwrap_or_default();
        compare(file);
        return;
    }
    let _ = written(&mut input);
}

fn written(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let (rows, dim) = (
        input.int_in_range(0..=5usize)?,
        input.int_in_range(1..=5usize)?,
    );
    let values = (0..rows * dim).map(|_| {
        let value = f32::from_bits(input.arbitrary()?);
        Ok(if value.is_finite() { value } else { 0.5 })
    });
    let values = values.collect::<arbitrary::Result<Vec<f32>>>()?;
    let mut fingerprint = Fingerprint::default();
    fingerprint
        .identity
        .insert(input.arbitrary()?, input.arbitrary()?);
    let mut set = Embeddings::new(dim, values, fingerprint).expect("finite, and whole rows");
    if input.arbitrary()? {
        let labels = (0..rows).map(|_| input.arbitrary::<String>());
        let labels = labels.collect::<arbitrary::Result<Vec<_>>>()?;
        set = set.with_labels(labels).expect("one for each row");
    }
    let mut file = set.to_bytes().expect("small");
    assert_eq!(
        Embeddings::from_bytes(&file).expect("what was written"),
        set
    );
    compare(&file);
    // Cut, lengthened, and bytes changed; in the header numbers by numbers, so that it stays one.
    for _ in 0..input.int_in_range(1..=4u8)? {
        let at = input.int_in_range(0..=file.len())?;
        match input.int_in_range(0..=3u8)? {
            0 => file.truncate(at),
            1 => file.extend(input.bytes(input.len().min(8))?),
            2 if at < file.len() => file[at] = input.arbitrary()?,
            _ => {
                let from = at.min(file.len());
                let digit = file[from..].iter().position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    file[from + digit] = b'0' + input.int_in_range(0..=9u8)?;
                }
            }
        }
    }
    compare(&file);
    Ok(())
}

/// Reads a file, and where it is one, as the reference implementation does.
fn compare(file: &[u8]) {
    let Ok(set) = ours(file.len(), || Embeddings::from_bytes(file)) else {
        return;
    };
    let read = SafeTensors::deserialize(file).expect("what is read here is one there");
    let vectors = read.tensor("embeddings").expect("vectors");
    assert_eq!(vectors.shape(), [set.len(), set.dim()]);
    let values: Vec<u8> = set
        .as_slice()
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    assert_eq!(vectors.data(), values);
    let counts: Vec<u8> = set
        .token_counts()
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .collect();
    assert_eq!(read.tensor("token_counts").expect("counts").data(), counts);
    if let Some(labels) = set.labels() {
        assert_eq!(
            read.tensor("label_text").expect("labels").data(),
            labels.concat().as_bytes()
        );
    }
    let again = set.to_bytes().expect("no larger than it was");
    assert_eq!(
        Embeddings::from_bytes(&again).expect("what was written"),
        set
    );
}
