//! Converts weights to another form when they are read.

use std::iter::repeat_n;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::tensor::DType;
use isovec_engine::weights::{Sink, WeightInfo, WeightSource, Weights};

use super::bytes as le;
use super::half::Half;
use super::int8::{Channels, dequantise, quantise};
use super::planes::{Layout, expanded};

/// What is made of one weight of the source, by its index there.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// The weight as it is.
    Same(usize),
    /// f32 to 16 bits.
    Half { weight: usize, half: Half },
    /// 16 bits to f32.
    FromHalf { weight: usize, half: Half },
    /// f32 to int8.
    Int8 {
        weight: usize,
        scales: Arc<[f32]>,
        channels: Channels,
    },
    /// The scales of an int8 weight.
    Scales(Arc<[f32]>),
    /// An int8 matrix of so many rows, column by column, with 128 for zero.
    Turned { weight: usize, rows: usize },
    /// f32s, each so many times.
    Repeated { scales: Operand, times: usize },
    /// Blocks of few bits to f32: the indices of their planes.
    FromBlocks {
        planes: Vec<usize>,
        scales: Operand,
        layout: Layout,
    },
    /// One behind the other.
    Joined(Vec<Form>),
    /// Quantised to f32.
    FromInts {
        weight: usize,
        scales: Operand,
        zeros: Option<Operand>,
        channels: Channels,
    },
}

/// A small tensor that is needed to read another.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    /// A weight of the source.
    Weight(usize),
    /// A constant of the graph.
    Constant { dtype: DType, data: Bytes },
}

/// The weights of a source, some of them in another form.
#[derive(Debug)]
pub(super) struct Reformed {
    pub(super) source: Weights,
    pub(super) infos: Vec<WeightInfo>,
    pub(super) forms: Vec<Form>,
}

impl Reformed {
    async fn make(&self, form: &Form) -> Result<Bytes> {
        match form {
            Form::Same(weight) => self.source.read(*weight).await,
            Form::Half { weight, half } => Ok(half.narrowed(&le::f32s(&self.read(*weight).await?))),
            Form::FromHalf { weight, half } => {
                Ok(le::of_f32s(&half.widened(&self.read(*weight).await?)))
            }
            Form::Int8 {
                weight,
                scales,
                channels,
            } => {
                let values = le::f32s(&self.read(*weight).await?);
                Ok(le::of_i8s(quantise(&values, 0, scales, *channels)))
            }
            Form::Scales(scales) => Ok(le::of_f32s(scales)),
            Form::Turned { weight, rows } => {
                let data = self.read(*weight).await?;
                let columns = data.len() / (*rows).max(1);
                let turned = (0..columns).flat_map(|column| {
                    let values = data.iter().skip(column).step_by(columns);
                    // Two's complement with its highest bit turned is the number above -128.
                    values.map(|value| value ^ 0x80)
                });
                Ok(turned.collect::<Vec<u8>>().into())
            }
            Form::Repeated { scales, times } => {
                let scales = le::f32s(&self.operand(scales).await?.1);
                let repeated = scales.iter().flat_map(|&scale| repeat_n(scale, *times));
                Ok(le::of_f32s(&repeated.collect::<Vec<_>>()))
            }
            Form::Joined(parts) => {
                let mut joined = BytesMut::new();
                for part in parts {
                    joined.extend_from_slice(&Box::pin(self.make(part)).await?);
                }
                Ok(joined.freeze())
            }
            Form::FromBlocks {
                planes,
                scales,
                layout,
            } => {
                let scales = le::f16s(&self.operand(scales).await?.1);
                let mut bytes = Vec::new();
                for &plane in planes {
                    bytes.push(self.read(plane).await?);
                }
                let bytes: Vec<&[u8]> = bytes.iter().map(AsRef::as_ref).collect();
                Ok(le::of_f32s(&expanded(&bytes, &scales, *layout)))
            }
            Form::FromInts {
                weight,
                scales,
                zeros,
                channels,
            } => {
                let scales = le::f32s(&self.operand(scales).await?.1);
                let zeros: Vec<i32> = match zeros {
                    Some(zeros) => {
                        let (dtype, data) = self.operand(zeros).await?;
                        ints(dtype, &data).collect()
                    }
                    None => Vec::new(),
                };
                let data = self.read(*weight).await?;
                let values = ints(self.source.weights()[*weight].dtype, &data);
                Ok(le::of_f32s(&dequantise(values, &scales, &zeros, *channels)))
            }
        }
    }

    async fn operand(&self, operand: &Operand) -> Result<(DType, Bytes)> {
        match operand {
            Operand::Weight(index) => {
                let dtype = self.source.weights()[*index].dtype;
                Ok((dtype, self.read(*index).await?))
            }
            Operand::Constant { dtype, data } => Ok((*dtype, data.clone())),
        }
    }

    /// Reads a weight of the source, which has to be as long as it says.
    async fn read(&self, index: usize) -> Result<Bytes> {
        read(&self.source, index).await
    }
}

impl WeightSource for Reformed {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        Box::pin(self.make(&self.forms[index]))
    }

    fn turned<'a>(&'a self, index: usize) -> Option<EngineFuture<'a, Bytes>> {
        match self.forms[index] {
            Form::Same(weight) => self.source.turned(weight),
            _ => None,
        }
    }

    fn lent(&self, index: usize) -> Option<Bytes> {
        match self.forms[index] {
            Form::Same(weight) => self.source.lent(weight),
            _ => None,
        }
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        let form = &self.forms[index];
        match form {
            Form::Same(weight) => self.source.read_pieces(*weight, sink),
            Form::Half { weight, .. }
            | Form::FromHalf { weight, .. }
            | Form::Int8 { weight, .. } => Box::pin(async move {
                let mut reforming = Reforming {
                    form,
                    taken: 0,
                    sink,
                };
                self.source.read_pieces(*weight, &mut reforming).await
            }),
            _ => Box::pin(async move { sink.take(&self.make(form).await?) }),
        }
    }
}

/// Takes values and hands them on in another form.
struct Reforming<'a> {
    form: &'a Form,
    /// Values so far.
    taken: usize,
    sink: &'a mut dyn Sink,
}

impl Sink for Reforming<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<()> {
        let first = self.taken;
        self.sink.take(&match self.form {
            Form::Int8 {
                scales, channels, ..
            } => {
                let values = le::f32s(piece);
                self.taken += values.len();
                le::of_i8s(quantise(&values, first, scales, *channels))
            }
            Form::Half { half, .. } => half.narrowed(&le::f32s(piece)),
            Form::FromHalf { half, .. } => le::of_f32s(&half.widened(piece)),
            _ => return self.sink.take(piece),
        })
    }
}

/// Reads the weight of f32s at this index of a source.
///
/// # Errors
/// [`EngineError::Weight`] for one that is not as long as it says; those of reading.
pub async fn floats(source: &Weights, index: usize) -> Result<Vec<f32>> {
    struct Values(Vec<f32>);
    impl Sink for Values {
        fn take(&mut self, piece: &[u8]) -> Result<()> {
            self.0.extend(le::f32_iter(piece));
            Ok(())
        }
    }
    let info = &source.weights()[index];
    let mut values = Values(Vec::with_capacity(info.elements()));
    source.read_pieces(index, &mut values).await?;
    check_length(info, size_of_val(&values.0[..]))?;
    Ok(values.0)
}

/// Reads a weight, which has to be as long as it says.
async fn read(source: &Weights, index: usize) -> Result<Bytes> {
    let info = &source.weights()[index];
    let data = source.read(index).await?;
    check_length(info, data.len())?;
    Ok(data)
}

fn check_length(info: &WeightInfo, gave: usize) -> Result<()> {
    if gave == info.byte_len() {
        return Ok(());
    }
    Err(EngineError::Weight {
        name: info.name.clone(),
        detail: format!("gave {gave} bytes instead of {}", info.byte_len()),
    })
}

/// Bytes as the 8-bit integers that they are.
fn ints(dtype: DType, data: &[u8]) -> impl ExactSizeIterator<Item = i32> {
    let signed = dtype == DType::I8;
    data.iter().map(move |&byte| {
        if signed {
            i32::from(byte as i8)
        } else {
            i32::from(byte)
        }
    })
}
