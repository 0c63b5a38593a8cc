//! Texts with their vectors in float64, from programs that share nothing with any engine.

use serde::Deserialize;

/// Texts and what their vectors should be.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The texts.
    pub texts: Vec<String>,
    /// `[texts, dim]`, row-major.
    pub vectors: Vec<f64>,
    /// Components of a vector.
    pub dim: usize,
}

#[derive(Deserialize)]
struct TinyReference {
    texts: Vec<TinyText>,
}

#[derive(Deserialize)]
struct TinyText {
    text: String,
    vector: Vec<f64>,
}

impl Reference {
    /// 121 real texts under all-MiniLM-L6-v2 (`tests/data/reference/README.md`).
    ///
    /// # Panics
    /// When the committed data are damaged.
    pub fn minilm() -> Self {
        let texts: Vec<String> = include_str!("../../data/reference/texts.txt")
            .lines()
            .map(str::to_owned)
            .collect();
        let (rows, dim, vectors) = parse_npy(include_bytes!("../../data/reference/vectors.npy"));
        assert_eq!(rows, texts.len(), "a vector a text");
        Self {
            texts,
            vectors,
            dim,
        }
    }

    /// The seeded tiny model's texts (`tests/data/tiny-bert`), which need no download.
    ///
    /// # Panics
    /// When the committed data are damaged.
    pub fn tiny() -> Self {
        let json = include_str!("../../data/tiny-bert/reference.json");
        let reference: TinyReference = serde_json::from_str(json).expect("reference.json parses");
        let dim = reference
            .texts
            .first()
            .expect("at least one text")
            .vector
            .len();
        let rows = reference.texts.iter();
        assert!(
            rows.clone().all(|row| row.vector.len() == dim),
            "rows of one length"
        );
        Self {
            vectors: rows.flat_map(|row| row.vector.iter().copied()).collect(),
            texts: reference.texts.into_iter().map(|row| row.text).collect(),
            dim,
        }
    }

    /// About `count` of the texts, evenly over all of them, so that short and long ones are among them.
    #[must_use]
    pub fn some(&self, count: usize) -> Self {
        let stride = self.texts.len().div_ceil(count.max(1)).max(1);
        let rows = || (0..self.texts.len()).step_by(stride);
        Self {
            texts: rows().map(|row| self.texts[row].clone()).collect(),
            vectors: rows().flat_map(|row| self.vector(row).to_vec()).collect(),
            dim: self.dim,
        }
    }

    /// The vector of one text.
    pub fn vector(&self, row: usize) -> &[f64] {
        &self.vectors[row * self.dim..][..self.dim]
    }
}

/// Reads a little-endian float32 matrix in NumPy's format, version 1
/// (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
fn parse_npy(bytes: &[u8]) -> (usize, usize, Vec<f64>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "NumPy format, version 1");
    let header_len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + header_len]).expect("an ASCII header");
    assert!(
        header.contains("'<f4'") && header.contains("'fortran_order': False"),
        "{header}"
    );
    let shape = header
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .expect("a shape")
        .0;
    let extents: Vec<usize> = shape
        .split(',')
        .filter_map(|extent| extent.trim().parse().ok())
        .collect();
    let [rows, columns] = extents[..] else {
        panic!("a matrix, not {shape}")
    };
    let values: Vec<f64> = bytes[10 + header_len..]
        .chunks_exact(4)
        .map(|chunk| f64::from(f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])))
        .collect();
    assert_eq!(
        values.len(),
        rows * columns,
        "as many values as the shape says"
    );
    (rows, columns, values)
}
