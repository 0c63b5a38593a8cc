//! scratch
mod support;
use isovec_tokenize::{Limits, Tokenizer};
#[test]
fn pre() {
    let json = std::fs::read("/tmp/tok/pre.json").unwrap();
    let t = std::time::Instant::now();
    let tok = Tokenizer::from_files(&support::bundle(json), "x").unwrap();
    println!("load {:?}", t.elapsed());
    let mut n = 0;
    for line in std::fs::read_to_string("/tmp/tok/pre_ids.jsonl")
        .unwrap()
        .lines()
    {
        let (s, ids): (String, Vec<u32>) = serde_json::from_str(line).unwrap();
        assert_eq!(
            tok.encode(&[&s], &Limits::default()).unwrap()[0].ids,
            ids,
            "{s:?}"
        );
        n += 1;
    }
    println!("same {n}");
}
