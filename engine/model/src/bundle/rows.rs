//! Whether a row's result depends on the rows beside it.
//!
//! Models quantised for int8 activations at run time (`quantize_dynamic` of ONNX Runtime's tools) scale a whole
//! tensor by its least and its greatest value. The tensor holds every row of the batch and its padding, so a text's
//! vector depends on the other texts.
//!
//! This module finds the operators that are defined to do so: `DynamicQuantizeLinear`; ONNX Runtime's own
//! `DynamicQuantizeMatMul` and `DynamicQuantizeLSTM`; and `BatchNormalization` in training mode, which uses the
//! batch's mean and variance. Operators that take quantised values and a scale (`MatMulInteger`,
//! `MatMulIntegerToFloat`, `QAttention`, the `QLinear` family) compute each row independently. If one of the
//! operators above makes their scale, that operator is found. The module does not look for reductions over all rows
//! that are composed of plain operators, because the graph does not say which axis holds the rows.

use std::collections::{HashMap, HashSet};
use std::fmt;

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};

/// The operator set of ONNX Runtime's own operators.
const CONTRIB: &str = "com.microsoft";

/// An operator by which one row's result depends on the others'.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowMixer {
    /// The node's name; its output's where it has none.
    pub node: String,
    /// `DynamicQuantizeLinear`.
    pub operator: String,
}

impl fmt::Display for RowMixer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of node {:?}", self.operator, self.node)
    }
}

/// The first operator by which one row's result depends on the rows and the padding beside it;
/// `None` where no such operator is known in the graph, the graphs in its nodes' attributes and
/// its local functions. One that reads only constants and weights does not count.
pub fn row_mixer(model: &ModelProto) -> Option<RowMixer> {
    let graph = model.graph.as_ref()?;
    let mut search = Search::default();
    for function in &model.functions {
        let key = (default_domain(&function.domain), function.name.as_str());
        search.functions.entry(key).or_default().push(function);
    }
    let mut fed = Fed::default();
    fed.0
        .extend(graph.input.iter().map(|input| input.name.as_str()));
    if let Some(found) = search.nodes(&graph.node, &mut fed) {
        return Some(found);
    }
    // One after another and each once: bad input may call them in a circle.
    while let Some(function) = search.open.pop() {
        let mut fed = Fed::default();
        fed.0.extend(function.input.iter().map(String::as_str));
        if let Some(found) = search.nodes(&function.node, &mut fed) {
            return Some(found);
        }
    }
    None
}

/// The names of values that are computed from what the model is fed.
#[derive(Default)]
struct Fed<'m>(HashSet<&'m str>);

impl<'m> Fed<'m> {
    /// Whether a node reads such a value itself, or a graph in its attributes does.
    fn reaches(&self, node: &'m NodeProto) -> bool {
        node.input.iter().any(|name| self.0.contains(name.as_str()))
            || graphs(node).any(|graph| {
                graph.node.iter().any(|inner| self.reaches(inner))
                    || graph
                        .output
                        .iter()
                        .any(|output| self.0.contains(output.name.as_str()))
            })
    }
}

#[derive(Default)]
struct Search<'m> {
    /// Local functions that nobody called so far, by operator set and name.
    functions: HashMap<(&'m str, &'m str), Vec<&'m FunctionProto>>,
    /// Those that were called with values that the model is fed, and are still to be searched.
    open: Vec<&'m FunctionProto>,
}

impl<'m> Search<'m> {
    /// Nodes stand in the order in which they are computed.
    fn nodes(&mut self, nodes: &'m [NodeProto], fed: &mut Fed<'m>) -> Option<RowMixer> {
        for node in nodes {
            if !fed.reaches(node) {
                continue;
            }
            if mixes(node, &fed.0) {
                let mut names = [&node.name].into_iter().chain(&node.output);
                return Some(RowMixer {
                    node: names
                        .find(|name| !name.is_empty())
                        .cloned()
                        .unwrap_or_default(),
                    operator: node.op_type.clone(),
                });
            }
            for graph in graphs(node) {
                // A loop hands to its body what the round before made of anything that it reads.
                fed.0
                    .extend(graph.input.iter().map(|input| input.name.as_str()));
                if let Some(found) = self.nodes(&graph.node, fed) {
                    return Some(found);
                }
            }
            let key = (default_domain(&node.domain), node.op_type.as_str());
            self.open
                .extend(self.functions.remove(&key).into_iter().flatten());
            fed.0.extend(node.output.iter().map(String::as_str));
        }
        None
    }
}

fn graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    let attributes = node.attribute.iter();
    attributes.flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// Whether this operator's result for one row depends on the other rows of its first input, which
/// is one of `fed`.
fn mixes(node: &NodeProto, fed: &HashSet<&str>) -> bool {
    let known = match (default_domain(&node.domain), node.op_type.as_str()) {
        ("", "DynamicQuantizeLinear") => true,
        (CONTRIB, "DynamicQuantizeMatMul" | "DynamicQuantizeLSTM") => true,
        ("", "BatchNormalization") => node.int("training_mode").is_some_and(|mode| mode != 0),
        _ => false,
    };
    let data = node.input.first();
    known && data.is_some_and(|name| fed.contains(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::builder::int;
    use isovec_engine::onnx::proto::{AttributeProto, ValueInfoProto};

    fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
        NodeProto {
            op_type: operator.into(),
            name: format!("{output}.node"),
            input: inputs.iter().map(|&name| name.into()).collect(),
            output: vec![output.into()],
            ..NodeProto::default()
        }
    }

    fn value(name: &str) -> ValueInfoProto {
        ValueInfoProto {
            name: name.into(),
            ..ValueInfoProto::default()
        }
    }

    fn graph(input: &str, node: Vec<NodeProto>, output: &str) -> GraphProto {
        GraphProto {
            input: vec![value(input)],
            output: vec![value(output)],
            node,
            ..GraphProto::default()
        }
    }

    fn model(nodes: Vec<NodeProto>) -> ModelProto {
        ModelProto {
            graph: Some(graph("ids", nodes, "y")),
            ..ModelProto::default()
        }
    }

    fn with_body(mut node: NodeProto, body: GraphProto) -> NodeProto {
        node.attribute.push(AttributeProto {
            name: "body".into(),
            g: Some(body),
            ..AttributeProto::default()
        });
        node
    }

    fn found(model: &ModelProto) -> Option<String> {
        row_mixer(model).map(|found| found.to_string())
    }

    #[test]
    fn what_scales_a_tensor_of_rows_is_found_and_named() {
        let nodes = || {
            vec![
                node("Gather", &["table", "ids"], "x"),
                node("DynamicQuantizeLinear", &["x"], "q"),
                node("Identity", &["q"], "y"),
            ]
        };
        let named = "DynamicQuantizeLinear of node \"q.node\"";
        assert_eq!(found(&model(nodes())).as_deref(), Some(named));
        let mut unnamed = nodes();
        unnamed[1].name.clear();
        assert_eq!(
            found(&model(unnamed)).as_deref(),
            Some("DynamicQuantizeLinear of node \"q\"")
        );
        // Another vendor's operator of that name may do anything.
        let mut foreign = nodes();
        foreign[1].domain = "com.example".into();
        assert_eq!(found(&model(foreign)), None);
    }

    #[test]
    fn a_scale_of_weights_does_not_mix() {
        let nodes = vec![
            node("DynamicQuantizeLinear", &["matrix"], "q"),
            node("Identity", &["q"], "constant"),
            node("MatMulInteger", &["ids", "constant"], "y"),
        ];
        assert_eq!(found(&model(nodes)), None);
        let static_scale = vec![node("QuantizeLinear", &["ids", "scale"], "y")];
        assert_eq!(found(&model(static_scale)), None);
    }

    #[test]
    fn onnx_runtimes_own_operators_are_known() {
        for operator in ["DynamicQuantizeMatMul", "DynamicQuantizeLSTM"] {
            let mut own = node(operator, &["ids", "matrix"], "y");
            assert_eq!(found(&model(vec![own.clone()])), None, "of no such set");
            own.domain = CONTRIB.into();
            assert!(found(&model(vec![own])).is_some(), "{operator}");
        }
        // Its weights are of the rows, what it quantises is not.
        let mut turned = node("DynamicQuantizeMatMul", &["matrix", "ids"], "y");
        turned.domain = CONTRIB.into();
        assert_eq!(found(&model(vec![turned])), None);
    }

    #[test]
    fn a_batchs_own_mean_mixes_and_a_stored_one_does_not() {
        let mut norm = node("BatchNormalization", &["ids", "s", "b", "m", "v"], "y");
        assert_eq!(found(&model(vec![norm.clone()])), None);
        norm.attribute.push(int("training_mode", 1));
        assert!(found(&model(vec![norm])).is_some());
    }

    #[test]
    fn graphs_in_attributes_are_looked_into() {
        let quantised = |of: &str| {
            let body = graph("v", vec![node("DynamicQuantizeLinear", &[of], "w")], "w");
            vec![
                node("Identity", &["ids"], "x"),
                with_body(node("Loop", &["trips", "", "start"], "y"), body),
            ]
        };
        // What the body reads from outside, and nothing else.
        assert!(found(&model(quantised("x"))).is_some());
        assert_eq!(found(&model(quantised("matrix"))), None);
        assert_eq!(found(&model(quantised("v"))), None, "fed by constants only");
        // A carried value that depends on the rows from the second round on.
        let body = graph(
            "v",
            vec![
                node("DynamicQuantizeLinear", &["v"], "q"),
                node("Add", &["q", "ids"], "w"),
            ],
            "w",
        );
        let looped = with_body(node("Loop", &["trips", "", "start"], "y"), body);
        assert!(found(&model(vec![looped.clone()])).is_some());
        // A graph in a graph.
        let outer = graph("u", vec![looped], "y");
        let nested = with_body(node("If", &["condition"], "z"), outer);
        assert!(found(&model(vec![nested])).is_some());
        // What a branch hands out of the rows is of the rows.
        let handed = vec![
            with_body(node("If", &["condition"], "x"), graph("u", vec![], "ids")),
            node("DynamicQuantizeLinear", &["x"], "y"),
        ];
        assert!(found(&model(handed)).is_some());
    }

    #[test]
    fn local_functions_are_looked_into_where_they_are_called_with_rows() {
        let function = |name: &str, node: Vec<NodeProto>| FunctionProto {
            name: name.into(),
            domain: "local".into(),
            input: vec!["a".into()],
            output: vec!["b".into()],
            node,
            ..FunctionProto::default()
        };
        let call = |name: &str, input: &str, output: &str| NodeProto {
            domain: "local".into(),
            ..node(name, &[input], output)
        };
        let functions = vec![
            function("Inner", vec![node("DynamicQuantizeLinear", &["a"], "b")]),
            function("Outer", vec![call("Inner", "a", "b")]),
            // In a circle, as no model may.
            function("Round", vec![call("Round", "a", "b")]),
        ];
        let with = |input: &str, name: &str| ModelProto {
            functions: functions.clone(),
            ..model(vec![call(name, input, "y")])
        };
        assert!(found(&with("ids", "Outer")).is_some());
        assert_eq!(found(&with("matrix", "Outer")), None);
        assert_eq!(found(&with("ids", "Round")), None);
    }
}
