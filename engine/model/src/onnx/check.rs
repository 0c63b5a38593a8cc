//! Checks a graph before other code walks it: every value has one source, and every reader comes after it. Engines
//! check more (types, shapes, operators) with their own words.

use std::collections::HashSet;
use std::fmt;

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, NodeProto};

/// The first fault of the model's graph, in words.
pub(super) fn check(model: &ModelProto) -> Result<(), String> {
    if model.ir_version < 1 {
        return Err(format!("it has the IR version {}", model.ir_version));
    }
    let Some(graph) = &model.graph else {
        return Err("it holds no graph".into());
    };
    let mut domains = HashSet::new();
    for set in &model.opset_import {
        if set.version < 1 {
            return Err(format!(
                "it imports version {} of the operator set {:?}",
                set.version, set.domain
            ));
        }
        if !domains.insert(default_domain(&set.domain)) {
            return Err(format!(
                "it imports the operator set {:?} twice",
                set.domain
            ));
        }
    }
    if graph.node.is_empty() {
        return Err("its graph has no node".into());
    }
    if graph.output.is_empty() {
        return Err("its graph has no output".into());
    }

    let mut seen = HashSet::new();
    for output in &graph.output {
        if !seen.insert(output.name.as_str()) {
            return Err(format!("it has two outputs named {:?}", output.name));
        }
    }
    let mut scope = Scope {
        layers: vec![HashSet::new()],
        domains,
    };
    scope.graph(graph, &"the graph")
}

/// The names that a node may read, innermost graph last.
struct Scope<'m> {
    layers: Vec<HashSet<&'m str>>,
    domains: HashSet<&'m str>,
}

impl<'m> Scope<'m> {
    /// Checks one graph; its names go into the innermost layer. `place` is written only into an error: a name may be as
    /// long as the file, and a node may have as many graphs.
    fn graph(&mut self, graph: &'m GraphProto, place: &dyn fmt::Display) -> Result<(), String> {
        for input in &graph.input {
            if input.name.is_empty() {
                return Err(format!("an input of {place} has no name"));
            }
            self.define(&input.name, "input", place)?;
        }
        // Before IR version 4 an initializer is the default value of an input of its name.
        let inputs: HashSet<&str> = graph
            .input
            .iter()
            .map(|input| input.name.as_str())
            .collect();
        let sparse = graph.sparse_initializer.iter();
        let sparse = sparse.filter_map(|tensor| tensor.values.as_ref());
        let mut initializers = HashSet::new();
        for tensor in graph.initializer.iter().chain(sparse) {
            let name = tensor.name.as_str();
            if name.is_empty() {
                return Err(format!("an initializer of {place} has no name"));
            }
            if !initializers.insert(name) {
                return Err(format!("{place} has two initializers named {name:?}"));
            }
            if !inputs.contains(name) {
                self.define(name, "initializer", place)?;
            }
        }
        for node in &graph.node {
            self.node(node, place)?;
        }
        for output in &graph.output {
            if !self.defined(&output.name) {
                return Err(format!(
                    "nothing computes {:?}, an output of {place}",
                    output.name
                ));
            }
        }
        Ok(())
    }

    fn node(&mut self, node: &'m NodeProto, place: &dyn fmt::Display) -> Result<(), String> {
        let described = Described(node);
        if node.op_type.is_empty() {
            return Err(format!("{described} in {place} has no operator"));
        }
        if !self.domains.contains(default_domain(&node.domain)) {
            return Err(format!(
                "{described} is of the operator set {:?}, which the model does not import",
                node.domain
            ));
        }
        for input in &node.input {
            if !input.is_empty() && !self.defined(input) {
                return Err(format!(
                    "{described} reads {input:?}, which nothing before it computes"
                ));
            }
        }
        for attribute in &node.attribute {
            for graph in attribute.g.iter().chain(&attribute.graphs) {
                let inner = Inner {
                    attribute: &attribute.name,
                    node,
                };
                self.layers.push(HashSet::new());
                let checked = self.graph(graph, &inner);
                self.layers.pop();
                checked?;
            }
        }
        for output in &node.output {
            if !output.is_empty() {
                self.define(output, "output of a node", place)?;
            }
        }
        Ok(())
    }

    fn defined(&self, name: &str) -> bool {
        self.layers.iter().any(|layer| layer.contains(name))
    }

    fn define(
        &mut self,
        name: &'m str,
        what: &str,
        place: &dyn fmt::Display,
    ) -> Result<(), String> {
        let fresh = self
            .layers
            .last_mut()
            .is_some_and(|layer| layer.insert(name));
        if fresh {
            return Ok(());
        }
        Err(format!(
            "{place} has two values named {name:?}, one an {what}"
        ))
    }
}

/// A node as messages name it.
struct Described<'m>(&'m NodeProto);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(node) = self;
        if node.name.is_empty() {
            write!(f, "a node {}", node.op_type)
        } else {
            write!(f, "node {:?} ({})", node.name, node.op_type)
        }
    }
}

/// A graph in a node's attribute as messages name it.
struct Inner<'m> {
    attribute: &'m str,
    node: &'m NodeProto,
}

impl fmt::Display for Inner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the graph {:?} of {}",
            self.attribute,
            Described(self.node)
        )
    }
}
