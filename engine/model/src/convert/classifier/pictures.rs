//! The heads of the classes that read pictures.

use isovec_engine::error::Result;

use super::{CLASSIFIER, Class, beside, declare, is_class, token};
use crate::convert::config::Config;
use crate::convert::net::Net;

/// Adds the output `logits`, f32 `[batch, labels]`, to the hidden states of ViT and DeiT: `classifier(first token)` of the classes
/// `ViTForImageClassification` and `DeiTForImageClassification`. `DeiTForImageClassificationWithTeacher` has a layer for each of
/// its first two tokens, and the mean of both results.
pub(in crate::convert) fn add_to_vit(
    config: &Config,
    net: &mut Net<'_>,
    hidden: usize,
) -> Result<()> {
    let teacher = "DeiTForImageClassificationWithTeacher";
    if is_class(config, teacher) {
        let [one, two] = ["cls_classifier", "distillation_classifier"];
        let class = Class {
            name: teacher,
            last: one,
            before: Some(two),
        };
        let Some(labels) = class.labels(config, net) else {
            return Ok(());
        };
        let [first, second] = [0, 1].map(|at| token(net, at));
        let first = beside(net, one, (hidden, labels), &first)?;
        let second = beside(net, two, (hidden, labels), &second)?;
        net.scope("mean");
        let sum = net.node("Add", &[&first, &second], vec![]);
        let half = net.builder().f32(0.5);
        net.node("Mul", &[&sum, &half], vec![]);
        declare(net, labels);
        return Ok(());
    }
    let deit = "DeiTForImageClassification";
    let class = Class {
        name: match is_class(config, deit) {
            true => deit,
            false => "ViTForImageClassification",
        },
        last: CLASSIFIER,
        before: None,
    };
    let Some(labels) = class.labels(config, net) else {
        return Ok(());
    };
    let first = token(net, 0);
    beside(net, CLASSIFIER, (hidden, labels), &first)?;
    declare(net, labels);
    Ok(())
}
