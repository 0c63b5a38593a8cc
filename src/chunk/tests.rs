//! Cutting, with counters that are unlike each other, and putting together around an engine that
//! only counts.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::backend::wait;
use crate::error::Error;
use crate::model::Prompt;
use crate::model::counting::*;

/// How many tokens a text has.
type Tokens = fn(&str) -> usize;

/// Counts by a rule, and what it was asked to count.
struct Rule {
    tokens: Tokens,
    fixed: usize,
    bytes: Cell<usize>,
}

impl Rule {
    fn new(tokens: Tokens, fixed: usize) -> Self {
        Self {
            tokens,
            fixed,
            bytes: Cell::default(),
        }
    }
}

impl Counter for &Rule {
    fn part(&self, text: &str) -> Result<usize> {
        self.bytes.set(self.bytes.get() + text.len());
        Ok((self.tokens)(text.trim()))
    }

    fn chunk(&self, text: &str) -> Result<usize> {
        Ok(self.part(text)? + self.fixed)
    }
}

/// What white space separates.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// A byte each, as the worst case of byte-level tokenizers is.
fn bytes(text: &str) -> usize {
    text.bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .count()
}

/// As WordPiece: long words are unknown, and the tokens of others are not those of their parts.
fn pieces(text: &str) -> usize {
    let words = text.split_whitespace().map(str::len);
    words
        .map(|bytes| if bytes > 20 { 1 } else { bytes.div_ceil(3) })
        .sum()
}

/// As Unigram: what is next to each other may melt into one token, or fall apart into more.
fn melting(text: &str) -> usize {
    text.len() / 5 + text.len() % 4
}

/// Zero bytes are nothing.
fn cleaning(text: &str) -> usize {
    words(&text.replace('\0', ""))
}

const RULES: [Tokens; 5] = [words, bytes, pieces, melting, cleaning];
const BYS: [ChunkBy; 3] = [ChunkBy::Tokens, ChunkBy::Sentences, ChunkBy::Markdown];

fn limits(by: ChunkBy, max: usize, fixed: usize, overlap: usize) -> Limits {
    let options = ChunkOptions::by(by).with_overlap(overlap);
    options.limits(max, fixed).unwrap()
}

fn cut(text: &str, limits: Limits, rule: &Rule) -> Result<Vec<Chunk>> {
    let mut cutter = Cutter::new(text, limits, rule);
    let mut chunks = Vec::new();
    while let Some(chunk) = cutter.next_chunk()? {
        chunks.push(chunk);
        assert!(chunks.len() <= text.len(), "it does not end");
    }
    Ok(chunks)
}

fn texts<'a>(text: &'a str, chunks: &[Chunk]) -> Vec<&'a str> {
    let ranges = chunks.iter().map(|chunk| chunk.range.clone());
    ranges.map(|range| &text[range]).collect()
}

/// By words, as long as `max`.
fn cut_words(text: &str, by: ChunkBy, max: usize, overlap: usize) -> Vec<&str> {
    let rule = Rule::new(words, 0);
    texts(
        text,
        &cut(text, limits(by, max, 0, overlap), &rule).unwrap(),
    )
}

/// Random text: scripts, marks, emoji, line ends, Markdown, zero bytes, with and without spaces.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a",
        "word",
        " ",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\n\n",
        ". ",
        ", ",
        "? ",
        "# ",
        "## ",
        "- ",
        "|",
        "|-|-|\n",
        "```\n",
        "> ",
        "    ",
        "1. ",
        "---\n",
        "[x](y)",
        "<b>",
        "*",
        "\\",
        "\t",
        "é",
        "e\u{301}",
        "中",
        "文",
        "。",
        "ไทย",
        "한국",
        "👩‍👩‍👧",
        "🇩🇪",
        "\0",
        "\u{200b}",
        "\u{2028}",
        "\u{a0}",
        "ﷺ",
        "averyverylongwordwithoutanyspaceinit",
        "3.14",
        "it's",
    ]);
    prop_oneof![
        prop::collection::vec(part, 0..150).prop_map(|parts| parts.concat()),
        "\\PC{0,300}",
        "[a-zé中👩]{0,900}",
    ]
}

proptest! {
    #[test]
    fn chunks_cover_the_text_in_order_within_their_limits(
        text in any_text(),
        by in prop::sample::select(BYS.to_vec()),
        rule in prop::sample::select(RULES.to_vec()),
        fixed in 0_usize..3,
        room in 4_usize..40,
        overlap in 0_usize..40,
    ) {
        let overlap = overlap.min(room - 1);
        let rule = Rule::new(rule, fixed);
        let chunks = cut(&text, limits(by, room + fixed, fixed, overlap), &rule).unwrap();
        let counter = &rule;
        let mut covered = 0;
        let mut last_start = None;
        for chunk in &chunks {
            let range = chunk.range.clone();
            let part = &text[range.clone()];
            prop_assert!(!part.is_empty() && part.trim() == part, "{part:?}");
            prop_assert_eq!(chunk.tokens, counter.chunk(part).unwrap());
            prop_assert!(chunk.tokens <= room + fixed, "{} tokens", chunk.tokens);
            prop_assert!(last_start < Some(range.start) && covered < range.end);
            if range.start < covered {
                let repeated = counter.part(&text[range.start..covered]).unwrap();
                prop_assert!(repeated <= overlap, "{repeated} tokens are repeated");
            } else {
                prop_assert!(text[covered..range.start].trim().is_empty());
            }
            last_start = Some(range.start);
            covered = range.end;
        }
        prop_assert!(text[covered..].trim().is_empty());
        if counter.chunk(&text).unwrap() <= room + fixed {
            prop_assert!(chunks.len() <= 1, "{chunks:?}");
        }
    }

    #[test]
    fn by_tokens_every_chunk_is_full(
        words in 1_usize..400, room in 1_usize..30, overlap in 0_usize..30,
    ) {
        let overlap = overlap.min(room - 1);
        let text = "rain ".repeat(words);
        let rule = Rule::new(self::words, 2);
        let limits = limits(ChunkBy::Tokens, room + 2, 2, overlap);
        let chunks = cut(&text, limits, &rule).unwrap();
        // Every chunk but the first brings so many words that were in none before.
        let new = room - overlap;
        prop_assert_eq!(chunks.len(), 1 + words.saturating_sub(room).div_ceil(new));
        for chunk in &chunks[..chunks.len() - 1] {
            prop_assert_eq!(chunk.tokens, room + 2);
        }
        for pair in chunks.windows(2) {
            let repeated = pair[0].range.end.saturating_sub(pair[1].range.start);
            prop_assert_eq!(repeated, (overlap * 5).saturating_sub(1));
        }
    }
}

#[test]
fn sentences_stay_whole_where_they_fit() {
    let text = "One two. Three four five. Six? Seven eight nine ten eleven twelve. End.";
    assert_eq!(
        cut_words(text, ChunkBy::Sentences, 5, 0),
        [
            "One two. Three four five.",
            "Six?",
            "Seven eight nine ten eleven",
            "twelve. End."
        ]
    );
    assert_eq!(
        cut_words(text, ChunkBy::Sentences, 7, 4),
        [
            "One two. Three four five. Six?",
            "Six? Seven eight nine ten eleven twelve.",
            "nine ten eleven twelve. End."
        ]
    );
}

#[test]
fn blocks_stay_whole_where_they_fit() {
    let text = "# Title\n\n## First\n\nA few words here.\n\n```rust\nlet a = 1;\nlet b = 2;\n```\n\n\
        ## Second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nThe end.";
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |";
    assert_eq!(
        cut_words(text, ChunkBy::Markdown, 17, 0),
        [
            "# Title\n\n## First\n\nA few words here.",
            "```rust\nlet a = 1;\nlet b = 2;\n```",
            "## Second",
            table,
            "The end."
        ]
    );
    assert_eq!(
        cut_words(text, ChunkBy::Markdown, 18, 0)[1..],
        [format!("## Second\n\n{table}").as_str(), "The end."]
    );
    // The table has 16 words: without room for it, its rows stay whole.
    for chunk in cut_words(text, ChunkBy::Markdown, 11, 0) {
        assert_eq!(chunk.matches("```").count() % 2, 0, "{chunk:?}");
        let rows = chunk.lines().filter(|line| line.contains('|'));
        rows.for_each(|row| assert!(row.starts_with('|') && row.ends_with('|'), "{row:?}"));
    }
}

#[test]
fn a_heading_stays_with_what_follows_it() {
    let long = "word ".repeat(60);
    let text = format!("# A\n\n{long}\n\n## B\n\n{long}");
    for chunk in cut_words(&text, ChunkBy::Markdown, 20, 0) {
        assert!(!chunk.ends_with('A') && !chunk.ends_with('B'), "{chunk:?}");
        assert!(!chunk.contains("word ## B"), "{chunk:?}");
    }
}

#[test]
fn a_character_that_does_not_fit_is_named() {
    let rule = Rule::new(bytes, 2);
    let limits = limits(ChunkBy::Tokens, 4, 2, 0);
    let error = cut("ab 中", limits, &rule).unwrap_err();
    assert_eq!(error.kind(), "Config");
    assert!(error.to_string().contains("\"中\" at byte 3"), "{error}");
}

#[test]
fn the_work_grows_with_the_length_whatever_the_text() {
    // Work is counted, so that a quarter of a megabyte shows what grows faster.
    const LONG: usize = 1 << 18;
    let prose = "The cat sat on a mat, and stocks fell; it's 3.14. Rain came\nover old hills. ";
    let cases: [(&str, String, Tokens); 8] = [
        ("prose", prose.repeat(3 * LONG / prose.len()), pieces),
        (
            "blocks",
            format!("{prose}\n\n").repeat(LONG / prose.len()),
            pieces,
        ),
        ("one word", "QUJD".repeat(LONG / 4), |text| text.len() / 3),
        ("one unknown word", "QUJD".repeat(LONG / 4), pieces),
        ("one grapheme", "\u{301}".repeat(LONG / 2), |text| {
            text.len() / 2
        }),
        (
            "stop and spaces",
            format!("1.{}x", " ".repeat(LONG)),
            pieces,
        ),
        ("nothing", "\0".repeat(LONG), cleaning),
        ("no stops", "rain ".repeat(LONG / 5), words),
    ];
    for (name, text, tokens) in cases {
        for by in BYS {
            for overlap in [0, 50] {
                let rule = Rule::new(tokens, 2);
                cut(&text, limits(by, 512, 2, overlap), &rule).unwrap();
                let times = rule.bytes.get() as f64 / text.len() as f64;
                assert!(
                    times < 8.0,
                    "{name} {by:?} {overlap}: counted {times} times"
                );
            }
        }
    }
}

fn embedder() -> (Embedder, Arc<Counting>) {
    let (model, engine) = model(Counting::free());
    (Embedder { model }, engine)
}

/// The vector of words.
fn wanted(words: &[u32]) -> Vec<f32> {
    let ids: Vec<i64> = words.iter().copied().map(i64::from).collect();
    vector(&ids).to_vec()
}

#[test]
fn every_chunk_has_its_vector_and_its_place() {
    let (embedder, _engine) = embedder();
    let list: Vec<String> = (0..3000_u32)
        .map(|n| {
            let words: Vec<u32> = (0..n % 20).map(|word| 2 + (n + word) % 80).collect();
            text(&words)
        })
        .collect();
    let options = ChunkOptions::by(ChunkBy::Tokens).with_overlap(2);
    let embedded = wait(embedder.embed_chunks(&list, options.clone())).unwrap();
    let mut place = 0;
    for (text, words) in list.iter().enumerate() {
        for chunk in embedder.chunk(words, &options).unwrap() {
            let at = &embedded.places[place];
            assert_eq!((at.text, &at.range), (text, &chunk.range));
            let numbers = words[chunk.range].split_whitespace();
            let numbers: Vec<u32> = numbers.map(|word| word[1..].parse().unwrap()).collect();
            assert_eq!(embedded.embeddings.get(place).unwrap(), wanted(&numbers));
            assert_eq!(
                embedded.embeddings.token_counts()[place] as usize,
                chunk.tokens
            );
            place += 1;
        }
    }
    assert_eq!(
        (place, embedded.embeddings.len()),
        (embedded.places.len(), place)
    );
    assert!(!embedded.embeddings.truncated().contains(&true));
    assert_eq!(embedder.stats().calls.embedded, 1);
}

#[test]
fn long_texts_have_one_vector_each() {
    let (embedder, _engine) = embedder();
    // Chunks of 8, 8 and 4 words.
    let long: Vec<u32> = (2..22).collect();
    let list = [text(&[5, 6]), text(&long), text(&[7])];
    for combine in [Combine::Mean, Combine::Max] {
        let options = ChunkOptions::by(ChunkBy::Tokens);
        let set = wait(embedder.embed_long(&list, options, combine)).unwrap();
        assert_eq!(set.get(0).unwrap(), wanted(&[5, 6]));
        assert_eq!(set.get(2).unwrap(), wanted(&[7]));
        assert_eq!(set.token_counts(), [2, 20, 1]);
        let chunks: Vec<(Vec<f32>, f64)> = long
            .chunks(8)
            .map(|words| (wanted(words), words.len() as f64))
            .collect();
        let mut sum = [0.0; 3];
        for (component, sum) in sum.iter_mut().enumerate() {
            let values = chunks.iter().map(|(v, n)| (f64::from(v[component]), n));
            *sum = match combine {
                Combine::Mean => values.map(|(value, n)| value * n).sum::<f64>() / 20.0,
                Combine::Max => values.map(|(value, _)| value).fold(f64::MIN, f64::max),
            };
        }
        let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
        for (value, sum) in set.get(1).unwrap().iter().zip(sum) {
            assert!((f64::from(*value) - sum / length).abs() < 1e-7);
        }
    }
}

#[test]
fn texts_without_words_are_as_embed_has_them() {
    let (embedder, _engine) = embedder();
    let options = ChunkOptions::default;
    assert!(
        wait(embedder.embed_long([""; 0], options(), Combine::Mean))
            .unwrap()
            .is_empty()
    );
    let chunks = wait(embedder.embed_chunks([" \n ", "w5", ""], options())).unwrap();
    assert_eq!((chunks.places.len(), chunks.places[0].text), (1, 1));
    // This tokenizer has no special tokens: such a text has nothing to embed.
    let error = wait(embedder.embed_long(["w5", " \n "], options(), Combine::Max)).unwrap_err();
    assert!(matches!(error, Error::NoTokens { text: 1 }), "{error}");
}

#[test]
fn a_chunk_at_fault_names_its_text() {
    let (embedder, _engine) = embedder();
    let bad = |word: u32| {
        let mut words = vec![3; 30];
        words[25] = word;
        [text(&[5; 50]), text(&words)]
    };
    let long = |list: [String; 2]| {
        wait(embedder.embed_long(list, ChunkOptions::default(), Combine::Mean)).unwrap_err()
    };
    assert!(matches!(long(bad(NAN)), Error::NotFinite { text: 1 }));
    assert!(matches!(
        long(bad(ZERO)),
        Error::NotNormalized { text: 1, .. }
    ));
    assert_eq!(long(bad(POISON)).kind(), "Runtime");
    let chunks = wait(embedder.embed_chunks(bad(NAN), ChunkOptions::default()));
    assert!(matches!(chunks, Err(Error::NotFinite { text: 1 })));
    assert_eq!(embedder.stats().calls.failed, 4);
}

#[test]
fn vectors_that_cancel_out_are_named() {
    let combined = |how| {
        let mut combined = combine::Combined::new(how);
        combined.add(&[0.6, 0.8], 7, 2, false);
        combined.add(&[-0.6, -0.8], 7, 2, false);
        let mut rows = Vec::new();
        combined.finish(4, true, &mut rows).map(|()| rows)
    };
    assert!(matches!(
        combined(Combine::Mean),
        Err(Error::NoDirection { text: 4 })
    ));
    let max = combined(Combine::Max).unwrap();
    assert!((max[0] - 0.6).abs() < 1e-7 && (max[1] - 0.8).abs() < 1e-7);
}

#[test]
fn contradictions_come_before_any_work() {
    let (embedder, engine) = embedder();
    let options = ChunkOptions::default().with_max_tokens(9).with_overlap(9);
    for error in [
        embedder.chunk("w1", &options).unwrap_err(),
        wait(embedder.embed_chunks(["w1"], options.clone())).unwrap_err(),
        wait(embedder.embed_long(["w1"], options.clone(), Combine::Mean)).unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Config(faults) if faults.len() == 2),
            "{error}"
        );
    }
    let long_prompt = EmbedOptions::default().with_prompt(Prompt::Text(text(&[2; 8])));
    let options = ChunkOptions::default();
    let error = embedder
        .chunk_with("w1", &options, &long_prompt)
        .unwrap_err();
    assert!(error.to_string().contains("prompt take 8"), "{error}");
    assert!(engine.shapes.lock().unwrap().is_empty());
}

#[test]
fn the_prompt_has_its_room_in_every_chunk() {
    let (embedder, engine) = embedder();
    let embed = EmbedOptions::default().with_prompt(Prompt::Text("w9 w9 ".into()));
    let options = ChunkOptions::by(ChunkBy::Tokens);
    let chunks = embedder
        .chunk_with(text(&[4; 12]), &options, &embed)
        .unwrap();
    assert_eq!(
        chunks.iter().map(|chunk| chunk.tokens).collect::<Vec<_>>(),
        [8, 8]
    );
    let list = [text(&[4; 12])];
    let embedded = wait(embedder.embed_chunks_with(list, options, embed)).unwrap();
    let words = [9, 9, 4, 4, 4, 4, 4, 4];
    assert_eq!(embedded.embeddings.get(1).unwrap(), wanted(&words));
    assert_eq!(embedded.embeddings.prompt(), Some("text"));
    assert!(!engine.shapes.lock().unwrap().is_empty());
}

#[test]
fn cancelling_stops_everything() {
    let (embedder, engine) = embedder();
    let cancel = Cancel::new();
    cancel.cancel();
    let embed = EmbedOptions::default().with_cancel(cancel);
    let options = ChunkOptions::default();
    let error = embedder.chunk_with("w1", &options, &embed).unwrap_err();
    assert!(error.is_cancelled());
    let long = embedder.embed_long_with(["w1"], options, Combine::Mean, embed);
    assert!(wait(long).unwrap_err().is_cancelled());
    assert!(engine.shapes.lock().unwrap().is_empty());

    // A run that would never end.
    let (model, _) = model(Counting {
        stuck: true,
        ..Counting::free()
    });
    let cancel = Cancel::new();
    let embed = EmbedOptions::default().with_cancel(cancel.clone());
    let embedder = Embedder { model };
    let long = embedder.embed_chunks_with([text(&[3; 50])], ChunkOptions::default(), embed);
    let waiting = std::thread::spawn(move || wait(long));
    cancel.cancel();
    assert!(waiting.join().unwrap().unwrap_err().is_cancelled());
}
