//! isovec loads ONNX Runtime, fastembed finds it loaded. A process of its own: what is loaded
//! first decides for the whole process.

#[test]
fn fastembed_works_after_isovec() {
    if !with_fastembed::available() {
        return;
    }
    let isovec = with_fastembed::isovec();
    let mut fastembed = with_fastembed::fastembed();
    with_fastembed::agree(&isovec, &mut fastembed);
    // Either may go first as well.
    drop(isovec);
    assert_eq!(fastembed.embed(vec!["a cat"], None).expect("fastembed embeds").len(), 1);
}
