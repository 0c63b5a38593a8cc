//! The same bits natively and in wasm: one hash of everything, known beforehand.
//!
//! In wasm: `cargo xtask test browser`.

mod common;

use common::{bits, offsets, values};
use isovec_kernels::{
    Activation, Arithmetic, Attention, AttentionRun, Columns, HeadColumns, Index, Lookup, Norm,
    NormKind, OffsetBias, Pooling, Rotary, Scratch, Table, TableValues, embed, l2_normalize, pool,
    softmax,
};

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// FNV-1a over the bits, 64 bits wide (<http://www.isthe.com/chongo/tech/comp/fnv/>).
fn hash(state: u64, values: &[f32]) -> u64 {
    bits(values)
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .fold(state, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Numbers of every magnitude.
fn wide_values() -> Vec<f32> {
    (0..=u32::MAX)
        .step_by(65_521)
        .map(f32::from_bits)
        .filter(|x| !x.is_nan())
        .collect()
}

fn activations(mut state: u64) -> u64 {
    for activation in [
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::GeluSigmoid,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Erf,
        Activation::Exp,
    ] {
        let mut x = wide_values();
        activation.apply(&mut x);
        state = hash(state, &x);
    }
    state
}

const HEADS: usize = 3;
const SIZE: usize = 24;
const HIDDEN: usize = HEADS * SIZE;
const LENGTHS: [usize; 4] = [1, 37, 0, 300];
const TOKENS: usize = 338;

/// `[tokens, queries + keys + values]`, queries and keys turned.
fn fused() -> Vec<f32> {
    let mut fused = values(3, TOKENS * 3 * HIDDEN);
    let (cosine, sine) = (values(4, 300 * SIZE / 2), values(5, 300 * SIZE / 2));
    let columns = HeadColumns {
        stride: 3 * HIDDEN,
        first: 0,
        heads: 2 * HEADS,
        head_size: SIZE,
    };
    Rotary::new(&cosine, &sine, SIZE / 2)
        .turn(&mut fused, columns, &offsets(&LENGTHS), 0..TOKENS)
        .expect("the table is long enough");
    fused
}

fn attend(arithmetic: Arithmetic, fused: &[f32], bias: bool, reach: Option<usize>) -> Vec<f32> {
    let biases = values(6, HEADS * 599);
    let attention = Attention {
        heads: HEADS,
        kv_heads: HEADS,
        head_size: SIZE,
        scale: 0.2,
        bias: bias.then_some(OffsetBias {
            values: &biases,
            positions: 300,
        }),
        relative: None,
        reach,
        causal: false,
        arithmetic,
    };
    let part = |number: usize| Columns::new(fused, 3 * HIDDEN, number * HIDDEN, HIDDEN);
    let offsets = offsets(&LENGTHS);
    let mut out = vec![0.0; TOKENS * HIDDEN];
    AttentionRun::new(attention, part(0), part(1), part(2), &offsets, &mut out)
        .expect("the bias is long enough")
        .run(&mut Scratch::default());
    out
}

/// A layer of a small encoder without its matrices.
fn layer(mut state: u64) -> u64 {
    let offsets = offsets(&LENGTHS);
    let table = values(1, 50 * HIDDEN);
    let ids: Vec<i64> = (0..TOKENS as i64).map(|n| n * 7 % 50).collect();
    let gamma = values(2, HIDDEN);
    let norm = Norm::new(NormKind::Layer, &gamma, Some(&table[..HIDDEN]), 1e-12);
    let table = Table::new(TableValues::F32(&table), HIDDEN);
    let indices = [Index::Ids(&ids), Index::Row(3)];
    let lookups = indices.map(|index| Lookup { table, index });
    let mut hidden = vec![0.0; TOKENS * HIDDEN];
    embed(&lookups, &offsets, 0..TOKENS, Some(&norm), &mut hidden).expect("ids are in the table");
    state = hash(state, &hidden);

    let fused = fused();
    for (bias, reach) in [(false, None), (true, None), (false, Some(50))] {
        let out = attend(Arithmetic::Deterministic, &fused, bias, reach);
        state = hash(state, &out);
        norm.add_apply(&mut hidden, &out);
    }
    Norm::new(NormKind::RootMeanSquare, &gamma, None, 1e-6).apply(&mut hidden);
    softmax(&mut hidden, HIDDEN);
    for pooling in [
        Pooling::Mean,
        Pooling::Cls,
        Pooling::LastToken,
        Pooling::Max,
        Pooling::WeightedMean,
        Pooling::MeanSqrtLen,
    ] {
        let mut out = vec![0.0; 4 * HIDDEN];
        pool(pooling, &hidden, HIDDEN, &offsets, &mut out);
        l2_normalize(&mut out, HIDDEN, 1e-12);
        state = hash(state, &out);
    }
    state
}

#[cfg_attr(not(target_arch = "wasm32"), test)]
#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
fn the_hash_of_everything_is_known() {
    let hash = layer(activations(0xcbf2_9ce4_8422_2325));
    assert_eq!(hash, 0x73eb_3d4c_bb6a_5cbb, "{hash:#018x}");
}

#[cfg_attr(not(target_arch = "wasm32"), test)]
#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
fn fused_products_differ_by_their_rounding_alone() {
    let fused = fused();
    let fast = attend(Arithmetic::Fast, &fused, true, None);
    let deterministic = attend(Arithmetic::Deterministic, &fused, true, None);
    for (fast, deterministic) in fast.iter().zip(&deterministic) {
        assert!(
            (fast - deterministic).abs() < 1e-6,
            "{fast} and {deterministic}"
        );
    }
}
