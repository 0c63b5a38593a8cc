//! fastembed loads ONNX Runtime and makes its environment, isovec finds both. A process of its
//! own: what is loaded first decides for the whole process.

#[test]
fn isovec_works_after_fastembed() {
    if !with_fastembed::available() {
        return;
    }
    let mut fastembed = with_fastembed::fastembed();
    let isovec = with_fastembed::isovec();
    with_fastembed::agree(&isovec, &mut fastembed);
    drop(fastembed);
    assert_eq!(isovec.embed(["a cat"]).expect("isovec embeds").into_vecs().len(), 1);
}
