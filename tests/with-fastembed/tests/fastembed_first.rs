//! fastembed loads ONNX Runtime and makes its environment, isovec finds both. A process of its
//! own: what is loaded first decides for the whole process.

#[test]
fn isovec_works_after_fastembed() {
    let Some(model) = with_fastembed::model() else {
        return;
    };
    let mut fastembed = with_fastembed::fastembed(&model);
    let isovec = with_fastembed::isovec(&model);
    with_fastembed::agree(&isovec, &mut fastembed);
    drop(fastembed);
    with_fastembed::alone(|text| isovec.embed_one(text).expect("isovec embeds"));
}
