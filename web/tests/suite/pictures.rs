//! A small convolutional network with seeded weights, and the same computation written out in f64.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::GraphProto;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{float, ints};

use super::model;

/// Channels, rows and columns of a picture.
const PICTURE: [usize; 3] = [3, 64, 48];
/// Channels of the maps, and components of the vectors.
pub const CHANNELS: usize = 32;

/// `count` numbers between -1/2 and 1/2 that depend on the seed alone.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // Marsaglia's xorshift64, its upper bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// Three convolutions of 3 x 3, each with a Relu, and the mean of all pixels. With `another` operator behind it, which no
/// program has, it is tract's.
pub fn model(another: bool) -> ModelBundle {
    let mut weights = BytesWeights::new();
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t.");
    let dims = [Dim::Symbolic("batch".into())];
    let dims: Vec<Dim> = dims.into_iter().chain(PICTURE.map(Dim::Fixed)).collect();
    g.input("pixels", DType::F32, &dims);
    let mut x = "pixels".to_owned();
    for (layer, weight) in kernels().into_iter().enumerate() {
        let name = format!("kernel{layer}");
        let shape = vec![CHANNELS, weight.len() / CHANNELS / 9, 3, 3];
        let bytes: Vec<u8> = weight
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let info = WeightInfo {
            name: name.clone(),
            dtype: DType::F32,
            shape,
        };
        weights.push(info, bytes::Bytes::from(bytes)).unwrap();
        let strides = if layer == 0 { 2 } else { 1 };
        let attributes = vec![ints("strides", &[strides; 2]), ints("pads", &[1; 4])];
        x = g.node("Conv", &[&x, &name], attributes);
        x = match another {
            // The same function, with a slope that changes nothing.
            true => g.node("LeakyRelu", &[&x], vec![float("alpha", 0.0)]),
            false => g.node("Relu", &[&x], vec![]),
        };
    }
    x = g.node("GlobalAveragePool", &[&x], vec![]);
    g.named_node("Flatten", &[&x], "vector", vec![]);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(CHANNELS)];
    g.output("vector", DType::F32, &dims);
    model::bundle(graph, Arc::new(weights))
}

fn kernels() -> [Vec<f32>; 3] {
    [PICTURE[0], CHANNELS, CHANNELS].map(|inputs| {
        let scale = 3.0 / (inputs as f32 * 9.0).sqrt();
        let all = numbers(inputs as u64, CHANNELS * inputs * 9);
        all.into_iter().map(|value| value * scale).collect()
    })
}

/// Pictures, one for each seed.
pub fn batch(seeds: &[u64]) -> Batch {
    let len = PICTURE.iter().product();
    let pixels: Vec<f32> = seeds.iter().flat_map(|&seed| numbers(seed, len)).collect();
    let shape: Vec<usize> = [seeds.len()].into_iter().chain(PICTURE).collect();
    Batch {
        inputs: vec![NamedTensor::new(
            "pixels",
            Tensor::from_slice(&shape, &pixels).unwrap(),
        )],
        ..Batch::default()
    }
}

/// The vector of the picture of a seed.
pub fn reference(seed: u64) -> Vec<f64> {
    let [mut channels, mut rows, mut columns] = PICTURE;
    let picture = numbers(seed, channels * rows * columns);
    let mut x: Vec<f64> = picture.into_iter().map(f64::from).collect();
    for (layer, weight) in kernels().into_iter().enumerate() {
        let stride = if layer == 0 { 2 } else { 1 };
        let (high, wide) = (rows.div_ceil(stride), columns.div_ceil(stride));
        let mut next = vec![0.0; CHANNELS * high * wide];
        for (at, sum) in next.iter_mut().enumerate() {
            let (channel, row, column) = (at / (high * wide), at / wide % high, at % wide);
            for tap in 0..channels * 9 {
                let y = (row * stride + tap / 3 % 3)
                    .checked_sub(1)
                    .filter(|&y| y < rows);
                let z = (column * stride + tap % 3)
                    .checked_sub(1)
                    .filter(|&z| z < columns);
                if let (Some(y), Some(z)) = (y, z) {
                    let value = x[(tap / 9 * rows + y) * columns + z];
                    *sum += value * f64::from(weight[channel * channels * 9 + tap]);
                }
            }
            *sum = sum.max(0.0);
        }
        (x, channels, rows, columns) = (next, CHANNELS, high, wide);
    }
    let planes = x.chunks(rows * columns);
    planes
        .map(|plane| plane.iter().sum::<f64>() / (rows * columns) as f64)
        .collect()
}
