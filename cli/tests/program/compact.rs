//! `isovec embed --compact`: the set that the SDK makes of the same vectors, and what cannot work.

use isovec::{CompactEmbeddings, CompactForm, Embeddings};

use crate::{isovec, stderr};

const TEXTS: [&str; 2] = ["a cat", "a dog that barks"];

fn embed(out: &str, more: &[&str]) -> assert_cmd::Command {
    let args = [
        "embed", TEXTS[0], TEXTS[1], "--engine", "portable", "-o", out,
    ];
    isovec(&[&args[..], more].concat())
}

#[test]
fn a_file_has_the_compact_form_of_the_same_vectors() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    embed(&place("f32.safetensors"), &[]).assert().success();
    let set = Embeddings::load(place("f32.safetensors")).expect("a set");
    for (word, form) in [("int8", CompactForm::Int8), ("binary", CompactForm::Binary)] {
        let out = place("compact.safetensors");
        embed(&out, &["--compact", word]).assert().success();
        let compact = CompactEmbeddings::load(&out).expect("a compact set");
        assert_eq!(compact, set.compact(form).expect("a compact set"));
        assert_eq!(compact.labels().expect("labels"), TEXTS);
    }
}

#[test]
fn other_formats_and_forms_are_refused_before_the_model_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.npy").display().to_string();
    let mut refused = embed(&out, &["--compact", "int8", "--model", "/no/such/model"]);
    let said = stderr(&mut refused, 2);
    assert!(said.contains(".safetensors"), "{said}");
    embed(&out, &["--compact", "int4"]).assert().code(2);
}
