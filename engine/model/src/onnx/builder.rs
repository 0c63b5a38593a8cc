//! A small helper that writes ONNX nodes: every call adds one node and returns the name of its output.

use std::collections::HashMap;

use bytes::Bytes;
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, DataType, Dimension, DimensionValue, GraphProto, NodeProto,
    TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
};
use isovec_engine::tensor::DType;

/// Appends nodes to a graph under a name prefix, so that the same calls give the same bytes.
#[derive(Debug)]
pub struct GraphBuilder<'g> {
    graph: &'g mut GraphProto,
    prefix: String,
    next: usize,
    /// The names of the constants so far.
    constants: HashMap<Constant, String>,
}

/// A constant by its type, its extents and its bytes.
type Constant = (i32, Vec<i64>, Bytes);

impl<'g> GraphBuilder<'g> {
    /// Builds onto `graph`; every new name starts with `prefix`, which must not occur in it yet.
    pub fn new(graph: &'g mut GraphProto, prefix: impl Into<String>) -> Self {
        Self {
            graph,
            prefix: prefix.into(),
            next: 0,
            constants: HashMap::new(),
        }
    }

    /// The graph so far.
    pub fn graph(&mut self) -> &mut GraphProto {
        self.graph
    }

    /// Adds `op(inputs)` and returns the name of its one output. An empty input name leaves an
    /// optional input out.
    pub fn node(&mut self, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        let output = self.fresh(op);
        self.named_node(op, inputs, &output, attributes);
        output
    }

    /// Adds `op(inputs)` with an output of the given name.
    pub fn named_node(
        &mut self,
        op: &str,
        inputs: &[&str],
        output: &str,
        attributes: Vec<AttributeProto>,
    ) {
        self.graph.node.push(NodeProto {
            op_type: op.into(),
            name: format!("{output}.node"),
            input: inputs.iter().map(|&name| name.into()).collect(),
            output: vec![output.into()],
            attribute: attributes,
            ..NodeProto::default()
        });
    }

    /// A small f32 constant inside the graph.
    pub fn f32s(&mut self, dims: &[i64], values: &[f32]) -> String {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.constant(DataType::Float, dims, bytes)
    }

    /// A scalar f32 constant.
    pub fn f32(&mut self, value: f32) -> String {
        self.f32s(&[], &[value])
    }

    /// A small i64 constant inside the graph.
    pub fn i64s(&mut self, dims: &[i64], values: &[i64]) -> String {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.constant(DataType::Int64, dims, bytes)
    }

    /// A scalar i32 constant.
    pub fn i32(&mut self, value: i32) -> String {
        self.constant(DataType::Int32, &[], value.to_le_bytes().to_vec())
    }

    /// A one-dimensional i64 constant, as axes and shapes are.
    pub fn ints(&mut self, values: &[i64]) -> String {
        self.i64s(&[values.len() as i64], values)
    }

    /// Declares an input of the graph.
    pub fn input(&mut self, name: &str, dtype: DType, dims: &[Dim]) {
        self.graph.input.push(value_info(name, dtype, dims));
    }

    /// Declares an output of the graph.
    pub fn output(&mut self, name: &str, dtype: DType, dims: &[Dim]) {
        self.graph.output.push(value_info(name, dtype, dims));
    }

    /// A name that no other call has given out.
    pub fn fresh(&mut self, hint: &str) -> String {
        self.next += 1;
        format!("{}{}_{}", self.prefix, hint, self.next)
    }

    fn constant(&mut self, data_type: DataType, dims: &[i64], bytes: Vec<u8>) -> String {
        // The same constant twice is one initializer.
        let constant = (data_type as i32, dims.to_vec(), Bytes::from(bytes));
        if let Some(name) = self.constants.get(&constant) {
            return name.clone();
        }
        let name = self.fresh("constant");
        self.graph.initializer.push(TensorProto {
            name: name.clone(),
            data_type: data_type as i32,
            dims: dims.to_vec(),
            raw_data: constant.2.clone(),
            ..TensorProto::default()
        });
        self.constants.insert(constant, name.clone());
        name
    }
}

/// An integer attribute.
pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}

/// A list of integers as an attribute.
pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Ints as i32,
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

/// A float attribute.
pub fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Float as i32,
        f: value,
        ..AttributeProto::default()
    }
}

/// A string attribute.
pub fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::String as i32,
        s: value.as_bytes().to_vec(),
        ..AttributeProto::default()
    }
}

/// A typed and shaped input or output.
pub fn value_info(name: &str, dtype: DType, dims: &[Dim]) -> ValueInfoProto {
    let dim = dims
        .iter()
        .map(|dim| Dimension {
            value: Some(match dim {
                Dim::Fixed(extent) => DimensionValue::Value(*extent as i64),
                Dim::Symbolic(name) => DimensionValue::Param(name.clone()),
            }),
            denotation: String::new(),
        })
        .collect();
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::Tensor(TensorType {
                elem_type: DataType::from(dtype) as i32,
                shape: Some(TensorShapeProto { dim }),
            })),
            denotation: String::new(),
        }),
        ..ValueInfoProto::default()
    }
}
