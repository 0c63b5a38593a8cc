//! Models of experts: a token costs the experts that were chosen for it, and the vectors have the bits of a program that computes all.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::collections::HashSet;
use std::sync::Arc;

use isovec_encoder::{Executable, NoTurns, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::fingerprint::Precision;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::head::Pooling;
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{int, ints};
use isovec_model::precision::narrowed;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::nomicbert_of_experts;
use isovec_test_models::texts::{batch, texts};

fn compiled(bundle: &ModelBundle) -> Arc<Executable> {
    let (cancel, mut turns) = (Cancel::new(), NoTurns);
    let executable = Executable::compile(bundle, Arithmetic::Fast, &cancel, &mut turns);
    Arc::new(pollster::block_on(executable).unwrap())
}

/// The vectors, and the multiply-adds of products with matrices `[inner, width]`.
fn run(
    executable: &Arc<Executable>,
    batch: &Batch,
    budget: Option<u64>,
    of: [usize; 2],
) -> (Vec<f32>, u64) {
    let mut run = Run::new(Arc::clone(executable), batch).unwrap();
    let mut multiply_adds = 0;
    while let Some(step) = run.step(budget, &OneThread).unwrap() {
        if step.operator == "linear" && [step.inner, step.width] == of {
            multiply_adds += step.multiply_adds;
        }
    }
    (run.finish().remove(0).2, multiply_adds)
}

/// The same model, in which somebody else reads the products of all experts as well.
fn apart(bundle: &ModelBundle) -> ModelBundle {
    let mut apart = bundle.clone();
    let graph = apart.graph.graph.as_mut().unwrap();
    let weighed: HashSet<String> = graph
        .node
        .iter()
        .filter(|node| node.op_type == "Mul")
        .map(|node| node.input[0].clone())
        .collect();
    let products = graph.node.iter().filter(|node| node.op_type == "MatMul");
    let products: Vec<String> = products.map(|node| node.output[0].clone()).collect();
    let first = graph.output[0].clone();
    for (at, product) in products
        .iter()
        .filter(|name| weighed.contains(*name))
        .enumerate()
    {
        let mut most = first.clone();
        most.name = format!("most {at}");
        let name = most.name.clone();
        graph.output.push(most);
        let attributes = vec![ints("axes", &[1]), int("keepdims", 0)];
        GraphBuilder::new(graph, "").named_node("ReduceMax", &[product], &name, attributes);
    }
    assert!(graph.output.len() > 1);
    apart
}

#[test]
fn a_token_costs_its_experts_and_has_the_bits_of_a_model_that_computes_all() {
    let model = nomicbert_of_experts();
    let size = |name: &str| model.config[name].as_u64().unwrap();
    let (hidden, wide) = (size("n_embd"), size("n_inner"));
    // Every other layer has experts.
    let (dense, of_experts) = (size("n_layer") / 2, size("n_layer") / 2);
    let full = bundle(&model, Stored::F32, Pooling::Mean);
    let cancel = Cancel::new();
    let int8 = pollster::block_on(narrowed(&full, Precision::Int8, &cancel));
    let int8 = int8.unwrap().bundle;
    let texts = texts(&[7, 1, 40, 2]);
    let tokens: usize = texts.iter().map(|(ids, _)| ids.len()).sum();
    for bundle in [full, int8] {
        let (gated, apart) = (compiled(&bundle), compiled(&apart(&bundle)));
        let batch = batch(&texts, 0);
        for of in [[hidden, wide], [wide, hidden]] {
            let of_one = tokens as u64 * hidden * wide;
            let of = of.map(|extent| extent as usize);
            let (vectors, cost) = run(&gated, &batch, None, of);
            assert_eq!(cost, of_one * (dense + of_experts * size("moe_top_k")));
            let (wanted, all) = run(&apart, &batch, None, of);
            assert_eq!(all, of_one * (dense + of_experts * size("num_experts")));
            assert_eq!(vectors, wanted);
            for budget in [1, 40_000] {
                assert_eq!(
                    run(&gated, &batch, Some(budget), of),
                    (vectors.clone(), cost)
                );
            }
        }
    }
}
