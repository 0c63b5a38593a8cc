use proptest::prelude::*;

use super::super::tests::sample;
use super::*;

/// Seeded numbers from -1 to 1: Knuth's linear congruential generator (MMIX).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.next()).collect()
    }
}

/// Seeded vectors of unit length around a few centres, as texts about a few things have them.
fn clustered(rows: usize, dim: usize, seed: u64) -> Embeddings {
    let mut same = Random(0);
    let centres: Vec<Vec<f32>> = (0..8).map(|_| same.vector(dim)).collect();
    let mut random = Random(seed);
    let mut values = Vec::with_capacity(rows * dim);
    for row in 0..rows {
        let noise = random.vector(dim);
        let vector: Vec<f32> = centres[row % 8]
            .iter()
            .zip(noise)
            .map(|(a, b)| a + b)
            .collect();
        let length = norm(&vector) as f32;
        values.extend(vector.iter().map(|value| value / length));
    }
    Embeddings::new(dim, values, sample().fingerprint().clone()).unwrap()
}

fn one(set: &Embeddings, row: usize) -> Embeddings {
    let values = set.get(row).unwrap().to_vec();
    Embeddings::new(set.dim(), values, set.fingerprint().clone()).unwrap()
}

/// The share of the ten nearest that a search finds, over twenty queries.
fn recall(set: &Embeddings, queries: &Embeddings, found: impl Fn(&Embeddings) -> Vec<Hit>) -> f64 {
    let mut same = 0;
    for row in 0..20 {
        let query = one(queries, row);
        let right = set.search_one(&query, 10).unwrap();
        let found = found(&query);
        assert_eq!(found.len(), 10);
        same += right
            .iter()
            .filter(|hit| found.iter().any(|other| other.index == hit.index))
            .count();
    }
    same as f64 / 200.0
}

#[test]
fn a_search_finds_what_a_search_in_f32_finds() {
    let (set, queries) = (clustered(2000, 100, 1), clustered(20, 100, 2));
    let int8 = set.compact(CompactForm::Int8).unwrap();
    let binary = set.compact(CompactForm::Binary).unwrap();
    assert_eq!((int8.codes().len(), int8.scales().len()), (200_000, 2000));
    assert_eq!((binary.codes().len(), binary.scales().len()), (26_000, 0));
    let of_int8 = recall(&set, &queries, |query| int8.search_one(query, 10).unwrap());
    let of_signs = recall(&set, &queries, |query| {
        binary.search_one(query, 10).unwrap()
    });
    let again = recall(&set, &queries, |query| {
        let hits = binary.search_one(query, 200).unwrap();
        int8.rescored(query, &hits, 10).unwrap()
    });
    assert!(of_int8 > 0.95, "{of_int8}");
    assert!(of_signs > 0.25, "{of_signs}");
    assert!(again > 0.95, "{again}");
}

#[test]
fn scores_are_close_and_a_vector_is_like_itself() {
    let set = clustered(64, 33, 3);
    for (form, bound) in [(CompactForm::Int8, 0.01), (CompactForm::Binary, 0.35)] {
        let compact = set.compact(form).unwrap();
        assert_eq!(
            (compact.len(), compact.dim(), compact.form()),
            (64, 33, form)
        );
        for row in 0..64 {
            let query = one(&set, row);
            let hits = compact.search_one(&query, 1).unwrap();
            assert_eq!(hits[0].index, row, "{form}");
            assert!((1.0 - hits[0].score).abs() < bound, "{form}: {hits:?}");
        }
    }
}

#[test]
fn the_inner_product_keeps_lengths_and_distances_are_refused() {
    let mut set =
        Embeddings::new(2, vec![3.0, 4.0, 0.3, 0.4], sample().fingerprint().clone()).unwrap();
    set.metric = Similarity::Dot;
    let query = one(&set, 0);
    let hits = set
        .compact(CompactForm::Int8)
        .unwrap()
        .search_one(&query, 2)
        .unwrap();
    assert!((hits[0].score - 25.0).abs() < 0.1, "{hits:?}");
    assert!((hits[1].score - 2.5).abs() < 0.01, "{hits:?}");
    let hits = set
        .compact(CompactForm::Binary)
        .unwrap()
        .search_one(&query, 2)
        .unwrap();
    assert_eq!(hits[0].score, 7.0);
    for metric in [Similarity::Euclidean, Similarity::Manhattan] {
        set.metric = metric;
        let error = set.compact(CompactForm::Int8).unwrap_err();
        assert_eq!(error.kind(), "InvalidEmbeddings");
        assert!(error.to_string().contains("distance"), "{error}");
    }
}

#[test]
fn what_has_no_direction_is_like_nothing() {
    let set = Embeddings::new(2, vec![0.0, 0.0, 1.0, 0.0], sample().fingerprint().clone()).unwrap();
    let compact = set.compact(CompactForm::Int8).unwrap();
    let hits = compact.search_one(&one(&set, 1), 2).unwrap();
    assert_eq!((hits[0].index, hits[1].score), (1, 0.0));
    let hits = compact.search_one(&one(&set, 0), 2).unwrap();
    assert!(hits.iter().all(|hit| hit.score == 0.0));
}

#[test]
fn strangers_and_hits_of_other_sets_are_refused() {
    let set = sample();
    let compact = set.compact(CompactForm::Int8).unwrap();
    let stranger = Embeddings::new(2, vec![0.0, 2.0], Fingerprint::default()).unwrap();
    let error = compact.search(&stranger, 2).unwrap_err();
    assert_eq!(error.kind(), "IncompatibleIndex");
    let longer = Embeddings::new(3, vec![1.0; 3], set.fingerprint().clone()).unwrap();
    let error = compact.search_one(&longer, 2).unwrap_err();
    assert_eq!(error.kind(), "InvalidEmbeddings");
    let error = compact.search_one(&set, 2).unwrap_err();
    assert!(matches!(error, Error::NotOneQuery { queries: 3 }));
    let far = [Hit {
        index: 3,
        score: 1.0,
    }];
    for error in [
        compact.rescored(&one(&set, 0), &far, 1).unwrap_err(),
        set.rescored(&one(&set, 0), &far, 1).unwrap_err(),
    ] {
        assert!(error.to_string().contains("3 rows"), "{error}");
    }
}

#[test]
fn hits_are_scored_again_by_the_set_that_is_asked() {
    let set = clustered(50, 16, 4);
    let query = one(&set, 7);
    let all = set.search_one(&query, 50).unwrap();
    let some: Vec<Hit> = all
        .iter()
        .rev()
        .map(|hit| Hit { score: 0.0, ..*hit })
        .collect();
    assert_eq!(set.rescored(&query, &some, 5).unwrap(), all[..5]);
    assert!(set.rescored(&query, &[], 5).unwrap().is_empty());
}

#[test]
fn a_file_gives_back_what_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.safetensors");
    let labelled = clustered(5, 12, 5)
        .with_labels(["a", "", "日本語", "d", "e"])
        .unwrap();
    for set in [sample(), labelled] {
        for form in [CompactForm::Int8, CompactForm::Binary] {
            let compact = set.compact(form).unwrap();
            compact.save(&path).unwrap();
            assert_eq!(CompactEmbeddings::load(&path).unwrap(), compact);
            assert_eq!(std::fs::read(&path).unwrap(), compact.to_bytes().unwrap());
            let mut written = Vec::new();
            compact.write_to(&mut written).unwrap();
            assert_eq!(written, compact.to_bytes().unwrap());
            let error = Embeddings::load(&path).unwrap_err().to_string();
            assert!(error.contains("CompactEmbeddings"), "{error}");
        }
        set.save(&path).unwrap();
        let error = CompactEmbeddings::load(&path).unwrap_err().to_string();
        assert!(error.contains("open it as Embeddings"), "{error}");
    }
}

#[test]
fn damaged_parts_are_named() {
    let bytes = |form| {
        clustered(3, 12, 6)
            .compact(form)
            .unwrap()
            .to_bytes()
            .unwrap()
    };
    let refused = |bytes: &[u8], words: &str| {
        let error = CompactEmbeddings::from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), "InvalidEmbeddings");
        assert!(error.to_string().contains(words), "{words}: {error}");
    };
    let replaced = |bytes: &[u8], from: &str, to: &str| {
        let at = bytes
            .windows(from.len())
            .position(|part| part == from.as_bytes());
        let mut bytes = bytes.to_vec();
        bytes[at.unwrap()..][..to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let int8 = bytes(CompactForm::Int8);
    refused(
        &replaced(&int8, "dimension\\\":12", "dimension\\\":13"),
        "13 components",
    );
    refused(
        &replaced(&int8, "dimension\\\":12", "dimension\\\":00"),
        "`isovec.embeddings`",
    );
    refused(
        &replaced(&int8, "dimension\\\":12", "dimensiom\\\":12"),
        "how many components",
    );
    refused(&replaced(&int8, "\"scales\"", "\"scaled\""), "not U8");
    for length in 0..int8.len() {
        refused(&int8[..length], "");
    }
    // The scales are the first tensor.
    let start = 8 + u64::from_le_bytes(*int8.first_chunk().unwrap()) as usize;
    for scale in [f32::NAN, f32::INFINITY, -1.0] {
        let mut wrong = int8.clone();
        wrong[start..start + 4].copy_from_slice(&scale.to_le_bytes());
        refused(&wrong, "no scale");
    }
    let mut loose = bytes(CompactForm::Binary);
    *loose.last_mut().unwrap() |= 1;
    refused(&loose, "behind its last component");
}

proptest! {
    /// A flipped byte is either refused or changes a value; it never panics.
    #[test]
    fn flipped_bytes_never_panic(at in any::<prop::sample::Index>(), flip in 1u8.., signs in any::<bool>()) {
        let form = if signs { CompactForm::Binary } else { CompactForm::Int8 };
        let set = sample().with_labels(["a", "b", "c"]).unwrap();
        let mut bytes = set.compact(form).unwrap().to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(read) = CompactEmbeddings::from_bytes(&bytes) {
            prop_assert_eq!((read.len(), read.labels().map(<[String]>::len)), (3, Some(3)));
        }
    }
}
