//! isovec loads ONNX Runtime, fastembed finds it loaded. A process of its own: what is loaded
//! first decides for the whole process.

#[test]
fn fastembed_works_after_isovec() {
    let Some(model) = with_fastembed::model() else {
        return;
    };
    let isovec = with_fastembed::isovec(&model);
    // It has run before fastembed comes, and made what it shares.
    with_fastembed::alone(|text| isovec.embed_one(text).expect("isovec embeds"));
    let mut fastembed = with_fastembed::fastembed(&model);
    with_fastembed::agree(&isovec, &mut fastembed);
    drop(isovec);
    with_fastembed::alone(|text| {
        let mut vectors = fastembed.embed([text], None).expect("fastembed embeds");
        vectors.remove(0)
    });
}
