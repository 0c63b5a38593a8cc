//! The tests' files.

use std::fs;
use std::path::{Path, PathBuf};

use isovec_engine::onnx::proto::{ModelProto, TensorProto, TypeValue, ValueInfoProto};
use prost::Message;

/// How many tests `onnx` 1.20.0 has.
pub const TESTS: usize = 1653;

/// A test.
#[derive(Debug, Clone)]
pub struct Case {
    /// The folder's name.
    pub name: String,
    /// The graph.
    pub model: ModelProto,
    /// Its inputs, in the graph's order.
    pub inputs: Vec<Given>,
    /// Its outputs as they have to be, in the graph's order.
    pub outputs: Vec<Given>,
}

/// What encoders are made of: products, elementwise functions, casts, softmax, norms, activations, rotary
/// embedding, gather, transpose, reshape, slice, concat, pad, where, reductions, and what stands between
/// them in exporters' graphs.
#[rustfmt::skip]
const OF_ENCODERS: [&str; 98] = [
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "Cast", "CastLike", "Ceil", "Celu",
    "Clip", "Concat", "Constant", "ConstantOfShape", "Cos", "Cosh", "Div", "Einsum", "Elu", "Equal", "Erf", "Exp",
    "Expand", "Flatten", "Floor", "Gather", "Gelu", "Gemm", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "Identity", "IsInf", "IsNaN", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax",
    "MatMul", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pad", "Pow",
    "RMSNormalization", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "RotaryEmbedding",
    "Round", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus",
    "Softsign", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Transpose",
    "Unsqueeze", "Where", "Xor",
];

impl Case {
    /// Whether all of its operators are such as encoders are made of.
    pub fn is_of_encoders(&self) -> bool {
        let mut nodes = self.model.graph.iter().flat_map(|graph| &graph.node);
        nodes.all(|node| OF_ENCODERS.contains(&node.op_type.as_str()))
    }
}

/// An input or output.
#[derive(Debug, Clone)]
pub struct Given {
    /// The graph's name.
    pub name: String,
    /// Its value; `None` for sequences, optional values and maps.
    pub tensor: Option<TensorProto>,
}

/// The folder of the tests: `ISOVEC_NODE_TESTS`, else where set-up puts it. `None`, aloud, where there
/// is none.
///
/// # Panics
/// The same where `ISOVEC_REQUIRE_NODE_TESTS=1`.
pub fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("ISOVEC_NODE_TESTS").map(PathBuf::from);
    let folder = named.or_else(|| Some(isovec::cache_dir()?.join("onnx-nodes/1.20.0")));
    match folder.filter(|folder| folder.join("test_abs/model.onnx").is_file()) {
        Some(folder) => Some(folder),
        None => {
            let needed = |name: &str| std::env::var_os(name).is_some_and(|v| v == "1");
            assert!(
                !needed("ISOVEC_REQUIRE_NODE_TESTS"),
                "the ONNX project's tests are not there: run `cargo xtask setup nodes`"
            );
            eprintln!("not run: `cargo xtask setup nodes` brings the ONNX project's tests");
            None
        }
    }
}

/// The names of all tests, in order.
///
/// # Panics
/// When the folder cannot be read or holds another number of tests.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder of the tests can be read");
    let names = entries.flatten().filter(|entry| entry.path().is_dir());
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names.len(), TESTS, "tests in {}", folder.display());
    names
}

/// Reads a test.
///
/// # Panics
/// When its files are damaged.
pub fn read(folder: &Path, name: &str) -> Case {
    let own = folder.join(name);
    let model = bytes(&own.join("model.onnx"));
    let model = ModelProto::decode(&model[..]).expect("model.onnx is a model");
    let graph = model.graph.as_ref().expect("model.onnx holds a graph");
    let given = |kind: &str, values: &[ValueInfoProto]| -> Vec<Given> {
        let values = values.iter().enumerate().map(|(at, value)| {
            let tensor = is_tensor(value).then(|| {
                let file = own.join(format!("test_data_set_0/{kind}_{at}.pb"));
                TensorProto::decode(&bytes(&file)[..]).expect("a tensor in the file")
            });
            Given {
                name: value.name.clone(),
                tensor,
            }
        });
        values.collect()
    };
    Case {
        name: name.to_owned(),
        inputs: given("input", &graph.input),
        outputs: given("output", &graph.output),
        model,
    }
}

fn is_tensor(value: &ValueInfoProto) -> bool {
    let kind = value.r#type.as_ref().and_then(|kind| kind.value.as_ref());
    matches!(kind, Some(TypeValue::Tensor(_)))
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
