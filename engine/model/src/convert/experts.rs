//! A mixture of experts: several feed-forwards, of which a router chooses a few for each token
//! (<https://arxiv.org/abs/2101.03961>; NomicBERT's: <https://arxiv.org/abs/2502.07972>).
//!
//! The graph computes every expert for every token, and multiplies what it gives with the token's weight for it, 0 where it was not
//! chosen. Operators of ONNX's standard have no other way that leaves the tokens where they are. An engine may leave out what is
//! multiplied with 0.

use isovec_engine::error::Result;
use isovec_engine::onnx::proto::DataType;
use serde_json::Value;

use super::activation::Activation;
use super::config::Config;
use super::linear::Linear;
use super::net::Net;
use crate::onnx::builder::int;

/// More experts than any layer has. Each pair of them is compared.
const MOST: usize = 256;

/// The experts of a model's layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Experts {
    /// How many a layer has.
    count: usize,
    /// How many a token goes through.
    chosen: usize,
    /// Layers from one with experts to the next.
    every: usize,
}

impl Experts {
    /// Those of a config, if it has any.
    pub(super) fn read(config: &Config) -> Result<Option<Self>> {
        let count = config.count_or("num_experts", 1)?;
        if count <= 1 {
            return Ok(None);
        }
        // The family's default is -1, which is nowhere.
        let every = config.value("moe_every_n_layers").and_then(Value::as_i64);
        let Some(every) = every
            .and_then(|every| usize::try_from(every).ok())
            .filter(|&every| every > 0)
        else {
            return Err(config.unsupported(
                "config.json sets num_experts, and moe_every_n_layers does not say which layers have experts",
            ));
        };
        if count > MOST {
            return Err(config.wrong(
                "num_experts",
                &format!("is {count}, and {MOST} are the most"),
            ));
        }
        let chosen = config.size_or("moe_top_k", 1)?;
        if chosen > count {
            let what = format!("is {chosen}, and a layer has {count} experts");
            return Err(config.wrong("moe_top_k", &what));
        }
        config.refuse_flag("expert_choice_router", "experts choose tokens")?;
        if config.count_or("num_shared_experts", 0)? > 0 {
            return Err(config.unsupported("config.json sets num_shared_experts"));
        }
        if config.count_or("ffn_div", 1)? != 1 {
            return Err(config.unsupported("config.json sets ffn_div: experts are narrower"));
        }
        let scaled = config.value("moe_normalize_expert_weights");
        if scaled.is_some_and(|by| by != false && by != 0) {
            return Err(config.unsupported("config.json sets moe_normalize_expert_weights"));
        }
        Ok(Some(Self {
            count,
            chosen,
            every,
        }))
    }

    /// What decides vectors and no tensor shows.
    pub(super) fn deciding(self) -> String {
        format!("{} of {}, every {}", self.chosen, self.count, self.every)
    }

    /// Whether a layer has experts.
    pub(super) fn are_in(self, layer: usize) -> bool {
        layer % self.every == 1
    }

    /// What the experts of a layer give, by the names under `mlp`; `wide` is their inner size.
    pub(super) fn apply(
        self,
        net: &mut Net<'_>,
        mlp: &str,
        [hidden, wide]: [usize; 2],
        activation: Activation,
        x: &str,
    ) -> Result<String> {
        let logits = Linear::new(format!("{mlp}.router.layer"), hidden, self.count).bias(false);
        let logits = logits.apply(net, x)?;
        let weights = net.node("Softmax", &[&logits], vec![int("axis", -1)]);
        let weights = self.of_chosen(net, &weights);
        let shape = [self.count * wide, hidden];
        let mut sum: Option<String> = None;
        for expert in 0..self.count {
            let rows = expert * wide..(expert + 1) * wide;
            let widen = net.transposed(&format!("{mlp}.experts.mlp.w1"), shape, rows.clone())?;
            let narrow = net.rows_of(&format!("{mlp}.experts.mlp.w2"), shape, rows)?;
            let inner = net.node("MatMul", &[x, &widen], vec![]);
            let inner = activation.apply(net, &inner);
            let own = net.node("MatMul", &[&inner, &narrow], vec![]);
            let weight = net.slice(&weights, 2, expert..expert + 1);
            let own = net.node("Mul", &[&own, &weight], vec![]);
            sum = Some(match sum {
                None => own,
                Some(sum) => net.node("Add", &[&sum, &own], vec![]),
            });
        }
        let sum = sum.unwrap_or_default();
        let bias = net.weight(&format!("{mlp}.experts.bias"), &[hidden])?;
        Ok(net.node("Add", &[&sum, &bias], vec![]))
    }

    /// The weights `[batch, sequence, experts]` with 0 for all but the largest of each token. Of equal weights the first is larger.
    fn of_chosen(self, net: &mut Net<'_>, weights: &str) -> String {
        let float = || vec![int("to", DataType::Float as i64)];
        let axis = |net: &mut Net<'_>, at: i64| net.builder().ints(&[at]);
        // How many are larger: a row for each expert, a column for each that it is compared with.
        let (two, three) = (axis(net, 2), axis(net, 3));
        let others = net.node("Unsqueeze", &[weights, &two], vec![]);
        let own = net.node("Unsqueeze", &[weights, &three], vec![]);
        let larger = net.node("Greater", &[&others, &own], vec![]);
        let larger = net.node("Cast", &[&larger], float());
        let equal = net.node("Equal", &[&others, &own], vec![]);
        let equal = net.node("Cast", &[&equal], float());
        let count = self.count as i64;
        let before = (0..self.count)
            .flat_map(|own| (0..self.count).map(move |it| f32::from(u8::from(it < own))));
        let before: Vec<f32> = before.collect();
        let before = net.builder().f32s(&[count, count], &before);
        let equal = net.node("Mul", &[&equal, &before], vec![]);
        let larger = net.node("Add", &[&larger, &equal], vec![]);
        let three = axis(net, 3);
        let rank = net.node("ReduceSum", &[&larger, &three], vec![int("keepdims", 0)]);
        let chosen = net.builder().f32(self.chosen as f32);
        let chosen = net.node("Less", &[&rank, &chosen], vec![]);
        let chosen = net.node("Cast", &[&chosen], float());
        net.node("Mul", &[weights, &chosen], vec![])
    }
}
