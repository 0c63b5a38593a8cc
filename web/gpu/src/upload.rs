//! Uploads weights to the device: each is read, uploaded and dropped.

use std::collections::HashMap;

use isovec_encoder::{Dense, Program, StoredMatrix, StoredTable, TakeWeights};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::tensor::DType;
use isovec_engine::{EngineError, Result};

use crate::device::Device;
use crate::dispatch::{Part, Product, TableForm, TableStored, Weights};
use crate::limits::Limits;

/// How a bundle's weights will be held.
pub(crate) struct Forms {
    /// By matrix.
    half: Vec<bool>,
    /// Whether whatever comes as f32 is held as f16.
    narrowed: bool,
    tables: Vec<TableForm>,
}

impl Forms {
    pub(crate) fn of(program: &Program, bundle: &ModelBundle, limits: &Limits) -> Self {
        let (matrices, tables) = program.weights();
        let tables = (0..tables).map(|place| {
            let (dtype, rows, width) = program.table(bundle, place);
            let (stored, row_bytes) = match dtype {
                DType::F16 => (TableStored::F16, width * 2),
                DType::I8 => (TableStored::I8, width + 4),
                _ if limits.half => (TableStored::F16, width * 2),
                _ => (TableStored::F32, width * 4),
            };
            // A multiple of four, so that every part begins with a whole word.
            let fit = (limits.binding_bytes / row_bytes.max(1) as u64) as usize / 4 * 4;
            TableForm {
                stored,
                part_rows: if fit >= rows { rows } else { fit.max(4) },
                rows,
                width,
            }
        });
        Self {
            half: (0..matrices)
                .map(|place| limits.half || program.matrix_dtype(bundle, place) == DType::F16)
                .collect(),
            narrowed: limits.half,
            tables: tables.collect(),
        }
    }
}

impl Weights for Forms {
    fn half(&self, parts: &[Part]) -> bool {
        parts.iter().all(|part| self.half[part.place])
    }

    fn table(&self, place: usize) -> &TableForm {
        &self.tables[place]
    }
}

/// The weights on the device.
#[derive(Debug)]
pub(crate) struct Uploaded {
    pub(crate) products: Vec<wgpu::Buffer>,
    /// The parts of each table.
    pub(crate) tables: Vec<Vec<wgpu::Buffer>>,
    pub(crate) bytes: u64,
}

/// Takes weights and uploads them.
pub(crate) struct Uploader<'a> {
    device: &'a Device,
    forms: &'a Forms,
    products: &'a [Product],
    /// By product and part, until all of a product are there.
    pending: HashMap<(usize, usize), Dense>,
    done: Vec<Option<wgpu::Buffer>>,
    tables: Vec<Vec<wgpu::Buffer>>,
    bytes: u64,
    /// What the device says of each buffer, when it does.
    verdicts: Vec<BoxFuture<'static, Result<(), String>>>,
}

impl<'a> Uploader<'a> {
    pub(crate) fn new(device: &'a Device, forms: &'a Forms, products: &'a [Product]) -> Self {
        Self {
            device,
            forms,
            products,
            pending: HashMap::new(),
            done: products.iter().map(|_| None).collect(),
            tables: forms.tables.iter().map(|_| Vec::new()).collect(),
            bytes: 0,
            verdicts: Vec::new(),
        }
    }

    /// The buffers, when all weights have come.
    ///
    /// # Errors
    /// [`EngineError::ProviderUnavailable`] where the device does not have the memory, [`EngineError::Weight`] for a
    /// weight that has not come.
    pub(crate) async fn finish(self) -> Result<Uploaded> {
        for verdict in self.verdicts {
            verdict.await.map_err(|error| {
                crate::device::unavailable(format!("it does not hold the model's weights: {error}"))
            })?;
        }
        let missing = || EngineError::Weight {
            name: "a matrix of a product".into(),
            detail: "nothing holds it".into(),
        };
        let products = self.done.into_iter();
        let products = products.map(|buffer| buffer.ok_or_else(missing));
        Ok(Uploaded {
            products: products.collect::<Result<_>>()?,
            tables: self.tables,
            bytes: self.bytes,
        })
    }

    fn upload(&mut self, label: &str, bytes: &[u8]) -> Result<wgpu::Buffer> {
        let size = (bytes.len() as u64).next_multiple_of(4).max(4);
        if size > self.device.limits.binding_bytes {
            return Err(crate::device::unavailable(format!(
                "{label} has {size} bytes, a buffer of the adapter {} at most {}",
                crate::device::name(&self.device.info),
                self.device.limits.binding_bytes
            )));
        }
        self.bytes += size;
        let buffer = self.buffer(label, size);
        {
            let mut view = buffer.get_mapped_range_mut(..).map_err(|error| {
                // Of a device that is there, a new buffer is mapped if there was memory for it.
                match self.device.check() {
                    Err(lost) => lost,
                    Ok(()) => crate::device::unavailable(format!(
                        "the adapter {} has no memory for {size} bytes of {label}: {error}",
                        crate::device::name(&self.device.info)
                    )),
                }
            })?;
            view.slice(..bytes.len()).copy_from_slice(bytes);
        }
        buffer.unmap();
        Ok(buffer)
    }

    /// A buffer to be filled. That there is no memory for it is an answer of the adapter's, and no fault of the device.
    fn buffer(&mut self, label: &str, size: u64) -> wgpu::Buffer {
        let watch = self.device.watch();
        let buffer = self.device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: true,
        });
        self.verdicts.push(Box::pin(watch.close()));
        buffer
    }

    /// Puts a product's parts side by side, when all of them are there.
    fn assemble(&mut self, at: usize) -> Result<()> {
        let product = &self.products[at];
        let own = || (0..product.parts.len()).map(|part| (at, part));
        if !own().all(|part| self.pending.contains_key(&part)) {
            return Ok(());
        }
        let mut parts: Vec<Dense> = own()
            .filter_map(|part| self.pending.remove(&part))
            .collect();
        let fours = product.k.is_multiple_of(4) && product.n.is_multiple_of(4);
        let half = (fours || self.forms.narrowed) && self.forms.half(&product.parts);
        let widths: Vec<usize> = product.parts.iter().map(|part| part.width).collect();
        let whole = match &mut parts[..] {
            [one] => std::mem::replace(one, Dense::F32(Vec::new())),
            _ => side_by_side(&parts, &widths, product.k),
        };
        let buffer = match whole {
            Dense::F16(values) if half => self.upload("weights", bytemuck::cast_slice(&values))?,
            whole => self.upload("weights", bytemuck::cast_slice(&floats(whole)))?,
        };
        self.done[at] = Some(buffer);
        Ok(())
    }
}

/// Matrices of `k` rows as one; f16 where all of them are.
fn side_by_side(parts: &[Dense], widths: &[usize], k: usize) -> Dense {
    fn joined<T: Copy>(parts: &[Vec<T>], widths: &[usize], k: usize) -> Vec<T> {
        let row = |row: usize| {
            let parts = parts.iter().zip(widths);
            parts.flat_map(move |(part, &width)| {
                part[row * width..(row + 1) * width].iter().copied()
            })
        };
        (0..k).flat_map(row).collect()
    }
    let halves: Option<Vec<Vec<u16>>> = parts
        .iter()
        .map(|part| match part {
            Dense::F16(values) => Some(values.clone()),
            Dense::F32(_) => None,
        })
        .collect();
    match halves {
        Some(halves) => Dense::F16(joined(&halves, widths, k)),
        None => {
            let parts: Vec<_> = parts.iter().cloned().map(floats).collect();
            Dense::F32(joined(&parts, widths, k))
        }
    }
}

/// The nearest f16 of each.
///
/// # Errors
/// [`EngineError::ProviderUnavailable`] where one is too large.
fn narrowed(values: &[f32]) -> Result<Vec<u16>> {
    let narrow = |&value: &f32| {
        let small = half::f16::from_f32(value);
        match value.is_finite() && !small.is_finite() {
            true => Err(crate::device::unavailable(format!(
                "the model has a weight of {value}, which overflows f16"
            ))),
            false => Ok(small.to_bits()),
        }
    };
    values.iter().map(narrow).collect()
}

fn floats(values: Dense) -> Vec<f32> {
    match values {
        Dense::F32(values) => values,
        Dense::F16(values) => values
            .into_iter()
            .map(|bits| half::f16::from_bits(bits).to_f32())
            .collect(),
    }
}

impl TakeWeights for Uploader<'_> {
    fn matrix(&mut self, place: usize, matrix: &StoredMatrix<'_>) -> Result<()> {
        let products = self.products;
        let mut dense = Some(match matrix.dense()? {
            Dense::F32(values) if self.forms.narrowed => Dense::F16(narrowed(&values)?),
            dense => dense,
        });
        let wanted: Vec<(usize, usize)> = products
            .iter()
            .enumerate()
            .flat_map(|(at, product)| {
                let parts = product.parts.iter().enumerate();
                let own = parts.filter(|(_, part)| part.place == place);
                own.map(move |(part, _)| (at, part))
            })
            .collect();
        for (number, &(at, part)) in wanted.iter().enumerate() {
            let own = match number + 1 == wanted.len() {
                true => dense.take(),
                false => dense.clone(),
            };
            if let Some(own) = own {
                self.pending.insert((at, part), own);
            }
            self.assemble(at)?;
        }
        Ok(())
    }

    fn table(&mut self, place: usize, table: StoredTable) -> Result<()> {
        let form = self.forms.table(place).clone();
        let table = match table {
            StoredTable::F32(values) if self.forms.narrowed => StoredTable::F16(narrowed(&values)?),
            table => table,
        };
        for part in 0..form.parts() {
            let first = part * form.part_rows;
            let last = form.rows.min(first + form.part_rows);
            let own = first * form.width..last * form.width;
            let buffer = match &table {
                StoredTable::F32(values) => {
                    self.upload("table", bytemuck::cast_slice(&values[own]))?
                }
                StoredTable::F16(values) => {
                    self.upload("table", bytemuck::cast_slice(&values[own]))?
                }
                StoredTable::I8 { values, scales } => {
                    let mut bytes: Vec<u8> = bytemuck::cast_slice(&values[own]).to_vec();
                    bytes.resize(bytes.len().next_multiple_of(4), 0);
                    bytes.extend_from_slice(bytemuck::cast_slice(&scales[first..last]));
                    self.upload("table", &bytes)?
                }
            };
            self.tables[place].push(buffer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Wanted, testing};

    /// As where memory is short: the next provider is asked, and the device is as good as before.
    #[test]
    fn a_buffer_that_the_device_refuses_is_no_lost_device() {
        let wanted = Wanted {
            software: true,
            ..Wanted::default()
        };
        pollster::block_on(async {
            let Some(device) = testing::device(&wanted).await else {
                return;
            };
            let forms = Forms {
                half: Vec::new(),
                narrowed: false,
                tables: Vec::new(),
            };
            let mut uploader = Uploader::new(&device, &forms, &[]);
            // Every device refuses that size, which is no multiple of four.
            uploader.buffer("weights", 6);
            let error = uploader.finish().await.unwrap_err();
            assert_eq!(error.kind(), "ProviderUnavailable", "{error}");
            device.check().unwrap();
        });
    }
}
