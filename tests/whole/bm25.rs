//! BM25 with a model's tokenizer: the numbers of an independent computation.

use std::collections::HashMap;

use isovec::{Bm25, Embedder, EmbeddingConfig, SparseEmbeddings};
use isovec_test_models::tiny::{tokens, vocabulary};
use isovec_test_support::{Which, data};

/// Words in one, several and all texts; a text without any, and one much longer than a model sees.
fn passages() -> Vec<String> {
    let mut texts = [
        "the dog is an animal",
        "The cat, the dog and the king",
        "",
        "money in the bank",
        "readable kindness",
    ]
    .map(String::from)
    .to_vec();
    texts.push("the river and the sea ".repeat(60));
    texts
}

fn bm25() -> Bm25 {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = Embedder::builder(data("tiny-bert")).config(config);
    Bm25::new(&smol::block_on(builder.load()).unwrap())
}

/// The score of a query with each passage, summed over the query's tokens as the paper has it.
fn scores(query: &str, passages: &[String], k1: f64, b: f64) -> Vec<f64> {
    let words = vocabulary();
    let texts: Vec<Vec<i64>> = passages.iter().map(|text| tokens(&words, text)).collect();
    let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len() as f64;
    let score = |text: &Vec<i64>| {
        let mut score = 0.0;
        for token in tokens(&words, query) {
            let holding = texts.iter().filter(|text| text.contains(&token)).count() as f64;
            let odds = (texts.len() as f64 - holding + 0.5) / (holding + 0.5);
            let idf = (1.0 + odds).ln();
            let often = text.iter().filter(|own| **own == token).count() as f64;
            if often == 0.0 {
                continue;
            }
            let length = text.len() as f64 / average;
            score += idf * often * (k1 + 1.0) / (often + k1 * (1.0 - b + b * length));
        }
        score
    };
    texts.iter().map(score).collect()
}

#[track_caller]
fn check(index: &SparseEmbeddings, query: &SparseEmbeddings, wanted: &[f64]) {
    let hits = index.search_one(query, wanted.len()).unwrap();
    let found: HashMap<usize, f32> = hits.iter().map(|hit| (hit.index, hit.score)).collect();
    for (at, &wanted) in wanted.iter().enumerate() {
        match found.get(&at) {
            Some(&score) => {
                let far = (f64::from(score) - wanted).abs();
                assert!(far <= 1e-6 * wanted, "{score} for {wanted} at {at}");
            }
            None => assert_eq!(wanted, 0.0, "passage {at} is no hit"),
        }
    }
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
}

#[test]
fn scores_are_those_of_an_independent_computation() {
    let passages = passages();
    for (k1, b) in [(1.2, 0.75), (0.9, 0.4), (0.0, 0.0), (2.0, 1.0)] {
        let bm25 = bm25().with_parameters(k1, b).unwrap();
        let index = bm25.embed_passages(&passages).unwrap();
        for query in [
            "dog",
            "the dog and the dog",
            "kindness of the king",
            "sea",
            "zebra",
        ] {
            let wanted = scores(query, &passages, k1, b);
            check(&index, &bm25.embed_query(query).unwrap(), &wanted);
        }
    }
    // Without a word, the usual parameters.
    let index = bm25().embed_passages(&passages).unwrap();
    let query = bm25().embed_query("the dog").unwrap();
    check(&index, &query, &scores("the dog", &passages, 1.2, 0.75));
    assert!(scores("dog", &passages, 1.2, 0.75)[0] > 0.1);
}

#[test]
fn a_set_says_what_was_counted_and_is_compared_with_its_own_kind() {
    let passages = passages();
    let bm25 = bm25();
    let index = bm25.embed_passages(&passages).unwrap();
    let words = vocabulary();
    assert_eq!((index.len(), index.vocabulary_size()), (6, words.len()));
    for (at, text) in passages.iter().enumerate() {
        assert_eq!(
            index.token_counts()[at] as usize,
            tokens(&words, text).len()
        );
        assert!(!index.truncated()[at]);
    }
    assert!(index.get(2).unwrap().is_empty());
    let read = SparseEmbeddings::from_bytes(&index.to_bytes().unwrap()).unwrap();
    assert_eq!(read, index);
    let none: [&str; 0] = [];
    assert!(bm25.embed_passages(none).unwrap().is_empty());
    let blank = bm25.embed_passages(["", ""]).unwrap();
    assert!(blank.iter().all(|row| row.is_empty()));
    assert!(
        blank
            .search_one(&bm25.embed_query("dog").unwrap(), 2)
            .unwrap()
            .is_empty()
    );
    let other = bm25.clone().with_parameters(1.2, 0.5).unwrap();
    let query = other.embed_query("dog").unwrap();
    assert_eq!(
        index.search_one(&query, 1).unwrap_err().kind(),
        "IncompatibleIndex"
    );
    for (k1, b) in [
        (-0.1, 0.5),
        (f64::NAN, 0.5),
        (f64::INFINITY, 0.5),
        (1.0, 1.1),
        (1.0, -0.1),
        (1.0, f64::NAN),
    ] {
        let error = bm25.clone().with_parameters(k1, b).unwrap_err();
        assert_eq!(error.kind(), "Config", "{k1} {b}");
    }
}
