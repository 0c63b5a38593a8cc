//! The same bits natively and in wasm: one hash of everything, known beforehand.
//!
//! In wasm: `wasm-pack test --node kernels --test same_bits`.

mod common;

use common::{bits, offsets, values};
use isovec_kernels::{
    Activation, Arithmetic, Attention, AttentionRun, Columns, HeadColumns, Index, Lookup, Norm,
    NormKind, OffsetBias, Pooling, Rotary, Scratch, Table, TableValues, embed, l2_normalize, pool,
    softmax,
};

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

/// A layer of a small encoder without its matrices.
fn layer(mut state: u64) -> u64 {
    const HIDDEN: usize = 3 * 24;
    let offsets = offsets(&[1, 37, 0, 300]);
    let tokens = 338;
    let table = values(1, 50 * HIDDEN);
    let ids: Vec<i64> = (0..tokens as i64).map(|n| n * 7 % 50).collect();
    let gamma = values(2, HIDDEN);
    let norm = Norm::new(NormKind::Layer, &gamma, Some(&table[..HIDDEN]), 1e-12);
    let table = Table::new(TableValues::F32(&table), HIDDEN);
    let lookups = [
        Lookup {
            table,
            index: Index::Ids(&ids),
        },
        Lookup {
            table,
            index: Index::Row(3),
        },
    ];
    let mut hidden = vec![0.0; tokens * HIDDEN];
    embed(&lookups, &offsets, 0..tokens, Some(&norm), &mut hidden).expect("ids are in the table");
    state = hash(state, &hidden);

    let mut fused = values(3, tokens * 3 * HIDDEN);
    let (cosine, sine) = (values(4, 300 * 12), values(5, 300 * 12));
    let columns = HeadColumns {
        stride: 3 * HIDDEN,
        first: 0,
        heads: 6,
        head_size: 24,
    };
    Rotary::new(&cosine, &sine, 12)
        .turn(&mut fused, columns, &offsets, 0..tokens)
        .expect("the table is long enough");
    let biases = values(6, 3 * 599);
    for (bias, reach) in [(false, None), (true, None), (false, Some(50))] {
        let attention = Attention {
            heads: 3,
            kv_heads: 3,
            head_size: 24,
            scale: 0.2,
            bias: bias.then_some(OffsetBias {
                values: &biases,
                positions: 300,
            }),
            reach,
            arithmetic: Arithmetic::Deterministic,
        };
        let part = |number: usize| Columns::new(&fused, 3 * HIDDEN, number * HIDDEN, HIDDEN);
        let mut out = vec![0.0; tokens * HIDDEN];
        AttentionRun::new(attention, part(0), part(1), part(2), &offsets, &mut out)
            .expect("the bias is long enough")
            .run(&mut Scratch::default());
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
    assert_eq!(hash, 0x47fb_8270_5ced_b3ce, "{hash:#018x}");
}
