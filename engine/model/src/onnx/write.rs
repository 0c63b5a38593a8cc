//! Writing a bundle as an ONNX file, one weight at a time: memory holds the graph and the weight
//! at hand. The same bundle gives the same bytes on every run.
//!
//! The file is written by the piece, because its largest piece, the graph, contains the weights:
//! the model's own fields, the graph's fields, its initializers in name order, and last a metadata
//! entry with a hash of the tensors that were written. The identity comes early and the hash last,
//! so a file that was cut short anywhere is found out. Protobuf readers take fields in any order
//! (<https://protobuf.dev/programming-guides/encoding/#order>).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::fresh::Fresh;
use isovec_engine::onnx::proto::{
    DATA_LOCATION_EXTERNAL, DataType, GraphProto, ModelProto, StringStringEntryProto, TensorProto,
};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::read::{hash_tensor, source_name};
use super::{IDENTITY_KEY, TENSORS_KEY};
use crate::identity::IdentityHasher;

/// Protobuf's limit for a message; larger models keep their weights in a second file.
const MAX_FILE_BYTES: u64 = i32::MAX as u64;

/// Weights begin at multiples of this in a second file, so that a runtime may map them.
const DATA_ALIGNMENT: u64 = 4096;

// Field numbers of the pieces that are not written through their Rust types.
const MODEL_GRAPH: u32 = 7;
const GRAPH_INITIALIZER: u32 = 5;
const TENSOR_RAW_DATA: u32 = 9;

/// Writes a bundle as one self-contained ONNX file in memory.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] past the 2 GiB that the format allows one file (see
/// [`export`]); [`EngineError::Weight`] when a weight cannot be read.
pub async fn write_model(bundle: &ModelBundle) -> Result<Vec<u8>> {
    let plan = Plan::new(bundle)?;
    let file_bytes = plan.file_bytes();
    if file_bytes > MAX_FILE_BYTES {
        return Err(EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason: format!(
                "it takes {file_bytes} bytes, and one ONNX file holds at most {MAX_FILE_BYTES}"
            ),
            hint: "Export it to a path, where its weights become a second file".into(),
        });
    }
    let mut memory = Sink {
        path: PathBuf::from("memory"),
        to: Vec::with_capacity(file_bytes as usize),
    };
    plan.write(&mut memory, None).await?;
    Ok(memory.to)
}

/// Writes a bundle to an ONNX file at `path`, and past 2 GiB its weights to a second file beside
/// it, named like the first with `.data` behind. Returns the files.
///
/// Each file gets its name when it is complete: on a full disk the old files stay.
///
/// # Errors
/// [`EngineError::Io`], naming the file; [`EngineError::Weight`] when a weight cannot be read.
pub async fn export(bundle: &ModelBundle, path: &Path) -> Result<Vec<PathBuf>> {
    place(stage(bundle, path).await?)
}

/// The same up to the names: the files are complete on the disk, beside where they will be, in the order in which they take
/// their names. Dropping them takes them away.
///
/// # Errors
/// As [`export`].
pub async fn stage(bundle: &ModelBundle, path: &Path) -> Result<Vec<Staged>> {
    stage_with_limit(bundle, path, MAX_FILE_BYTES).await
}

/// Names the files; the model comes first in what is returned.
fn place(staged: Vec<Staged>) -> Result<Vec<PathBuf>> {
    let placed: Result<Vec<_>> = staged.into_iter().map(Staged::place).collect();
    let mut placed = placed?;
    placed.reverse();
    Ok(placed)
}

async fn stage_with_limit(
    bundle: &ModelBundle,
    path: &Path,
    max_file_bytes: u64,
) -> Result<Vec<Staged>> {
    let mut plan = Plan::new(bundle)?;
    let mut model = Part::create(path.to_owned())?;
    if plan.file_bytes() <= max_file_bytes {
        plan.write(&mut model.sink, None).await?;
        return Ok(vec![model.finish()?]);
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name
        .ok_or_else(|| EngineError::io(path, io::Error::other("the file needs a name in UTF-8")))?;
    let location = format!("{name}.data");
    let mut data = Part::create(path.with_file_name(&location))?;
    plan.move_weights_to(&location);
    plan.write(&mut model.sink, Some(&mut data.sink)).await?;
    // The data first: a model without its data is worse than data without its model.
    Ok(vec![data.finish()?, model.finish()?])
}

/// What is going to be written.
struct Plan<'b> {
    bundle: &'b ModelBundle,
    /// The model without graph.
    head: ModelProto,
    /// The graph without initializers.
    graph: GraphProto,
    /// Name order.
    initializers: Vec<Initializer>,
}

/// One initializer to be written.
struct Initializer {
    /// Complete for a tensor of the graph; for a weight all but its bytes.
    tensor: TensorProto,
    weight: Option<Weight>,
}

/// Where an initializer's bytes come from and go to.
struct Weight {
    index: usize,
    bytes: u64,
    /// Its place in the second file.
    offset: Option<u64>,
}

impl<'b> Plan<'b> {
    fn new(bundle: &'b ModelBundle) -> Result<Self> {
        let mut head = bundle.graph.clone();
        let mut graph = head.graph.take().ok_or_else(|| {
            EngineError::invalid_model(bundle.origin.clone(), "it holds no graph")
        })?;
        let metadata = &mut head.metadata_props;
        metadata.retain(|entry| entry.key != IDENTITY_KEY && entry.key != TENSORS_KEY);
        metadata.push(entry(IDENTITY_KEY, bundle.identity.0.clone()));

        let inline = std::mem::take(&mut graph.initializer).into_iter();
        let mut initializers: Vec<Initializer> = inline
            .map(|tensor| Initializer {
                tensor,
                weight: None,
            })
            .collect();
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            initializers.push(Initializer {
                tensor: TensorProto {
                    name: info.name.clone(),
                    data_type: DataType::from(info.dtype) as i32,
                    dims: info.shape.iter().map(|&extent| extent as i64).collect(),
                    ..TensorProto::default()
                },
                weight: Some(Weight {
                    index,
                    bytes: info.byte_len() as u64,
                    offset: None,
                }),
            });
        }
        initializers.sort_by(|a, b| a.tensor.name.cmp(&b.tensor.name));
        let double = initializers
            .windows(2)
            .find(|pair| pair[0].tensor.name == pair[1].tensor.name);
        if let Some(double) = double {
            return Err(EngineError::Weight {
                name: double[0].tensor.name.clone(),
                detail: "is in the bundle twice".into(),
            });
        }
        Ok(Self {
            bundle,
            head,
            graph,
            initializers,
        })
    }

    /// Gives every weight a place in a second file.
    fn move_weights_to(&mut self, location: &str) {
        let mut end = 0u64;
        for Initializer { tensor, weight } in &mut self.initializers {
            let Some(weight) = weight else { continue };
            let offset = end.next_multiple_of(DATA_ALIGNMENT);
            end = offset + weight.bytes;
            weight.offset = Some(offset);
            tensor.data_location = DATA_LOCATION_EXTERNAL;
            tensor.external_data = vec![
                entry("location", location.to_owned()),
                entry("offset", offset.to_string()),
                entry("length", weight.bytes.to_string()),
            ];
        }
    }

    /// Bytes of the graph, weights included unless they have a place in a second file.
    fn graph_bytes(&self) -> u64 {
        let initializers = self.initializers.iter().map(Initializer::bytes);
        let framed = initializers.map(|bytes| framed(GRAPH_INITIALIZER, bytes));
        self.graph.encoded_len() as u64 + framed.sum::<u64>()
    }

    /// Bytes of the model's file; the hash in its metadata has always the same length.
    fn file_bytes(&self) -> u64 {
        let tail = tail(IdentityHasher::new().finish().0).encoded_len();
        let graph = framed(MODEL_GRAPH, self.graph_bytes());
        self.head.encoded_len() as u64 + graph + tail as u64
    }

    async fn write<W: Write>(
        &self,
        file: &mut Sink<W>,
        mut data: Option<&mut Sink<W>>,
    ) -> Result<()> {
        file.put(&self.head.encode_to_vec())?;
        file.frame(MODEL_GRAPH, self.graph_bytes())?;
        file.put(&self.graph.encode_to_vec())?;
        let mut hasher = IdentityHasher::new();
        let mut data_end = 0u64;
        for initializer in &self.initializers {
            let Initializer { tensor, weight } = initializer;
            file.frame(GRAPH_INITIALIZER, initializer.bytes())?;
            file.put(&tensor.encode_to_vec())?;
            let Some(weight) = weight else {
                hash_tensor(&mut hasher, tensor);
                continue;
            };
            let bytes = self.read(weight, &tensor.name).await?;
            let shape = tensor.dims.iter().map(|&extent| extent as u64);
            let data_type = DataType::try_from(tensor.data_type).unwrap_or(DataType::Undefined);
            hasher.tensor(&tensor.name, source_name(data_type), shape, &bytes);
            match (weight.offset, data.as_deref_mut()) {
                (Some(offset), Some(data)) => {
                    // Less than the alignment, so it fits on every target.
                    data.put(&vec![0; (offset - data_end) as usize])?;
                    data.put(&bytes)?;
                    data_end = offset + weight.bytes;
                }
                _ => {
                    file.frame(TENSOR_RAW_DATA, weight.bytes)?;
                    file.put(&bytes)?;
                }
            }
        }
        file.put(&tail(hasher.finish().0).encode_to_vec())
    }

    async fn read(&self, weight: &Weight, name: &str) -> Result<Bytes> {
        let bytes = self.bundle.weights.read(weight.index).await?;
        if bytes.len() as u64 == weight.bytes {
            return Ok(bytes);
        }
        Err(EngineError::Weight {
            name: name.to_owned(),
            detail: format!("gave {} bytes instead of {}", bytes.len(), weight.bytes),
        })
    }
}

impl Initializer {
    /// Bytes it takes in the model's file, its frame not counted.
    fn bytes(&self) -> u64 {
        let raw = match &self.weight {
            Some(Weight {
                bytes,
                offset: None,
                ..
            }) => framed(TENSOR_RAW_DATA, *bytes),
            _ => 0,
        };
        self.tensor.encoded_len() as u64 + raw
    }
}

/// What follows the graph, as a model that has nothing else: protobuf joins the two.
fn tail(hash: String) -> ModelProto {
    ModelProto {
        metadata_props: vec![entry(TENSORS_KEY, hash)],
        ..ModelProto::default()
    }
}

fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto {
        key: key.into(),
        value,
    }
}

/// Bytes of a length-delimited field with its key and length.
fn framed(tag: u32, bytes: u64) -> u64 {
    (key_len(tag) + encoded_len_varint(bytes)) as u64 + bytes
}

/// A destination with a name for messages.
struct Sink<W> {
    path: PathBuf,
    to: W,
}

impl<W: Write> Sink<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.to
            .write_all(bytes)
            .map_err(|error| EngineError::io(&self.path, error))
    }

    /// The key and length in front of a length-delimited field.
    fn frame(&mut self, tag: u32, bytes: u64) -> Result<()> {
        let mut frame = Vec::new();
        encode_key(tag, WireType::LengthDelimited, &mut frame);
        encode_varint(bytes, &mut frame);
        self.put(&frame)
    }
}

/// A file that is being written, and vanishes when it is not completed.
struct Part {
    fresh: Fresh,
    /// Named as the file will be, which is what a user knows.
    sink: Sink<BufWriter<File>>,
}

impl Part {
    fn create(path: PathBuf) -> Result<Self> {
        let (fresh, file) = Fresh::file(&path).map_err(|error| EngineError::io(&path, error))?;
        let to = BufWriter::with_capacity(1 << 18, file);
        let sink = Sink { path, to };
        Ok(Self { fresh, sink })
    }

    /// Brings it onto the disk.
    fn finish(self) -> Result<Staged> {
        let Sink { path, mut to } = self.sink;
        to.flush()
            .and_then(|()| to.get_ref().sync_all())
            .map_err(|error| EngineError::io(&path, error))?;
        let fresh = self.fresh;
        Ok(Staged { fresh, path })
    }
}

/// A file that is complete and has yet to take its name; it vanishes when it is dropped.
#[derive(Debug)]
pub struct Staged {
    fresh: Fresh,
    path: PathBuf,
}

impl Staged {
    /// The file, and where it will be.
    pub fn into_parts(self) -> (Fresh, PathBuf) {
        (self.fresh, self.path)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// [`EngineError::Io`], naming the file.
    pub fn place(self) -> Result<PathBuf> {
        let Self { fresh, path } = self;
        match fresh.replace(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(EngineError::io(&path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::bundle::{self, BundleOptions};
    use crate::onnx::GraphBuilder;
    use isovec_engine::onnx::proto::OperatorSetIdProto;
    use isovec_engine::tensor::DType;
    use isovec_engine::weights::{BytesWeights, WeightInfo, WeightsIdentity};

    /// The sum of two large weights of unlike sizes and an input.
    fn bundle() -> ModelBundle {
        let mut weights = BytesWeights::new();
        let mut graph = GraphProto::default();
        let mut builder = GraphBuilder::new(&mut graph, "test.");
        builder.input("x", DType::F32, &[]);
        let mut sum = "x".to_owned();
        for (name, elements) in [("b", 1000), ("a", 1500)] {
            let info = WeightInfo {
                name: name.into(),
                dtype: DType::F32,
                shape: vec![elements],
            };
            let data: Vec<u8> = (0..4 * elements).map(|byte| byte as u8).collect();
            weights.push(info, data).unwrap();
            sum = builder.node("Add", &[&sum, name], Vec::new());
        }
        builder.output(&sum, DType::F32, &[]);
        ModelBundle {
            graph: ModelProto {
                ir_version: 8,
                opset_import: vec![OperatorSetIdProto {
                    domain: String::new(),
                    version: 17,
                }],
                graph: Some(graph),
                ..ModelProto::default()
            },
            weights: std::sync::Arc::new(weights),
            identity: WeightsIdentity("0".repeat(64)),
            files: BTreeMap::new(),
            model_file: "model.onnx".into(),
            origin: "test".into(),
        }
    }

    #[test]
    fn past_the_limit_weights_become_a_second_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        // What a user may have beside it, under the names that come to mind.
        let own = folder.path().join("model.onnx.part");
        fs::write(&own, "a user's").unwrap();
        let staged = pollster::block_on(stage_with_limit(&bundle(), &path, 9_999)).unwrap();
        assert!(!path.exists(), "it has no name before it is placed");
        let files = place(staged).unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"a user's");
        fs::remove_file(own).unwrap();
        assert_eq!(files, [path.clone(), folder.path().join("model.onnx.data")]);
        assert!(fs::metadata(&path).unwrap().len() < 1000);
        // In name order, each at a multiple of the alignment.
        let sizes = [6000usize.next_multiple_of(DATA_ALIGNMENT as usize), 4000];
        let data = fs::metadata(&files[1]).unwrap().len();
        assert_eq!(data, sizes.iter().sum::<usize>() as u64);

        let back = bundle::from_folder(folder.path(), &BundleOptions::default()).unwrap();
        assert_eq!(back.identity, bundle().identity);
        let whole = |bundle: &ModelBundle| pollster::block_on(write_model(bundle)).unwrap();
        assert_eq!(whole(&back), whole(&bundle()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_size_is_known_before_anything_is_written() {
        let plan = Plan::new(&bundle()).unwrap().file_bytes();
        let file = pollster::block_on(write_model(&bundle())).unwrap();
        assert_eq!(plan, file.len() as u64);
    }
}
