//! Texts that are longer than the model sees: cut off, in chunks, and as one vector.
#![cfg(feature = "chunking")]

use isovec::blocking::Embedder;
use isovec::config::Truncation;
use isovec::{ChunkBy, ChunkOptions, Combine, EmbedOptions, EmbeddingConfig, Prompt};
use isovec_test_support::{engines, mixed_texts, tiny_model};
use proptest::prelude::*;

fn load(config: EmbeddingConfig) -> Embedder {
    let config = isovec_test_support::Which::Portable.configure(config);
    Embedder::builder(tiny_model())
        .config(config)
        .load()
        .unwrap()
}

#[test]
fn the_part_that_is_kept_is_what_the_model_sees() {
    // A token each.
    let words: Vec<&str> = "about act add after again air all also always an and animal answer any"
        .split(' ')
        .collect();
    // Twelve tokens, two of them special; a quarter of ten is rounded up.
    let last = |count: usize| words[words.len() - count..].join(" ");
    let kept = [
        (None, words[..10].join(" "), "cut at the end"),
        (
            Some(Truncation::KeepHead),
            words[..10].join(" "),
            "cut at the end",
        ),
        (Some(Truncation::KeepTail), last(10), "cut at the start"),
        (
            Some(Truncation::KeepBoth),
            format!("{} {}", words[..3].join(" "), last(7)),
            "cut in the middle, a quarter from the start",
        ),
    ];
    for (truncation, kept, identity) in kept {
        let config = EmbeddingConfig::default().with_max_length(12);
        let embedder = load(match truncation {
            Some(truncation) => config.with_truncation(truncation),
            None => config,
        });
        let long = embedder.embed([words.join(" ")]).unwrap();
        assert_eq!(
            (long.truncated(), long.token_counts()),
            (&[true][..], &[12][..])
        );
        assert_eq!(long.as_slice(), embedder.embed([kept]).unwrap().as_slice());
        let entry = &embedder.fingerprint().identity["truncation"];
        assert_eq!(*entry, format!("12 tokens, {identity}"));
        let knob = embedder.effective_config().get("text.truncation").unwrap();
        assert_eq!(knob.asked, truncation.map(|asked| asked.to_string()));
        assert_eq!(
            knob.used,
            truncation.unwrap_or(Truncation::KeepHead).to_string()
        );
    }
}

#[test]
fn combined_vectors_are_those_of_the_chunks() {
    let list = [
        mixed_texts(40).join(". "),
        "a cat".to_owned(),
        mixed_texts(9).join("\n\n"),
    ];
    for engine in engines() {
        let config = engine.configure(EmbeddingConfig::default().with_deterministic_compute(true));
        let embedder = Embedder::builder(tiny_model())
            .config(config)
            .load()
            .unwrap();
        for prompt in [Prompt::Default, Prompt::Query] {
            let embed = EmbedOptions::default().with_prompt(prompt);
            let options = ChunkOptions::default().with_max_tokens(30).with_overlap(5);
            let chunks = embedder
                .embed_chunks_with(&list, options.clone(), embed.clone())
                .unwrap();
            assert!(!chunks.embeddings.truncated().contains(&true));
            // What special tokens and the prompt take is no part of a chunk's weight.
            let nothing = embedder.embed_with([""], embed.clone()).unwrap();
            let fixed = nothing.token_counts()[0];
            for combine in [Combine::Mean, Combine::Max] {
                let whole = embedder
                    .embed_long_with(&list, options.clone(), combine, embed.clone())
                    .unwrap();
                assert_eq!(whole.fingerprint(), embedder.fingerprint());
                assert_eq!(whole.prompt(), chunks.embeddings.prompt());
                for text in 0..list.len() {
                    let of_text = |row: &usize| chunks.places[*row].text == text;
                    let rows: Vec<usize> = (0..chunks.places.len()).filter(of_text).collect();
                    let tokens =
                        |row: usize| f64::from(chunks.embeddings.token_counts()[row] - fixed);
                    let value =
                        |row: usize, at: usize| f64::from(chunks.embeddings.get(row).unwrap()[at]);
                    let expected: Vec<f64> = (0..embedder.dimension())
                        .map(|at| match combine {
                            Combine::Max => rows
                                .iter()
                                .map(|&row| value(row, at))
                                .fold(f64::MIN, f64::max),
                            _ => rows.iter().map(|&row| value(row, at) * tokens(row)).sum(),
                        })
                        .collect();
                    let length = expected
                        .iter()
                        .map(|value| value * value)
                        .sum::<f64>()
                        .sqrt();
                    for (value, expected) in whole.get(text).unwrap().iter().zip(expected) {
                        assert!((f64::from(*value) - expected / length).abs() < 1e-6);
                    }
                }
                // The one that fits is as `embed` has it.
                let alone = embedder.embed_with([&list[1]], embed.clone()).unwrap();
                assert_eq!(whole.get(1), alone.get(0));
            }
            // A chunk's vector is that of its text.
            let place = &chunks.places[2];
            let text = &list[place.text][place.range.clone()];
            let alone = embedder.embed_with([text], embed).unwrap();
            assert_eq!(chunks.embeddings.get(2), alone.get(0));
        }
    }
}

#[test]
fn the_models_own_tokenizer_agrees_on_random_text() {
    let embedder = load(EmbeddingConfig::default());
    let prompt = EmbedOptions::default().with_prompt(Prompt::Query);
    let part = prop::sample::select(vec![
        "a",
        "cat",
        " ",
        " ",
        "\n",
        "\r\n\r\n",
        ". ",
        "# ",
        "- ",
        "|",
        "```\n",
        "é",
        "e\u{301}",
        "中文",
        "ไทย",
        "👩‍👩‍👧",
        "\0",
        "unbelievable",
        "\u{200b}",
        "3.14",
    ]);
    let text = prop::collection::vec(part, 0..200).prop_map(|parts| parts.concat());
    let by = prop::sample::select(vec![ChunkBy::Tokens, ChunkBy::Sentences, ChunkBy::Markdown]);
    proptest!(ProptestConfig::with_cases(300), |(text in text, by in by, max in 12_usize..64, overlap in 0_usize..7)| {
        let options = ChunkOptions::by(by).with_max_tokens(max).with_overlap(overlap);
        let chunks = embedder.chunk_with(&text, &options, &prompt).unwrap();
        let mut covered = 0;
        for chunk in &chunks {
            let part = &text[chunk.range.clone()];
            let seen = embedder.count_tokens(format!("query: {part}")).unwrap();
            prop_assert_eq!(chunk.tokens, seen);
            prop_assert!(seen <= max, "{seen} tokens");
            prop_assert!(chunk.range.start <= covered || text[covered..chunk.range.start].trim().is_empty());
            covered = chunk.range.end;
        }
        prop_assert!(text[covered..].trim().is_empty());
    });
}

#[test]
fn what_cannot_be_is_an_error_before_any_work() {
    let embedder = load(EmbeddingConfig::default());
    for (options, words) in [
        (
            ChunkOptions::default().with_max_tokens(65),
            "the model sees 64",
        ),
        (
            ChunkOptions::default().with_max_tokens(2),
            "have no room for text",
        ),
        (
            ChunkOptions::default().with_overlap(62),
            "has to be smaller",
        ),
    ] {
        let error = embedder.chunk("a cat", &options).unwrap_err();
        assert_eq!(error.kind(), "Config");
        assert!(error.to_string().contains(words), "{error}");
    }
    let unknown = EmbedOptions::default().with_prompt(Prompt::Named("nobody's".into()));
    let error = embedder.chunk_with("a cat", &ChunkOptions::default(), &unknown);
    assert_eq!(error.unwrap_err().kind(), "Config");
}
