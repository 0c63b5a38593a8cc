//! The graph under construction: nodes with readable names, and weights checked as they are named.

use std::ops::Range;
use std::sync::Arc;

use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::{AttributeProto, GraphProto};
use isovec_engine::weights::WeightInfo;

use super::config::Config;
use super::logit_score::LogitScore;
use super::source::{ConvertedWeights, Recipe, dtype_of, is_float};
use crate::onnx::GraphBuilder;
use crate::onnx::builder::int;
use crate::safetensors::{SourceTensor, TensorSet};

/// A graph being built over one checkpoint.
pub(super) struct Net<'g> {
    builder: GraphBuilder<'g>,
    scope: String,
    tensors: Arc<TensorSet>,
    prefix: String,
    infos: Vec<WeightInfo>,
    recipes: Vec<Recipe>,
    no_logits: Option<String>,
}

impl<'g> Net<'g> {
    /// Builds into `graph`. `anchor` is a tensor that every checkpoint of the family holds once;
    /// what stands before it in the checkpoint (`bert.`, `roberta.`, nothing) stands before all.
    pub(super) fn new(
        graph: &'g mut GraphProto,
        config: &Config,
        tensors: Arc<TensorSet>,
        anchor: &str,
    ) -> Result<Self> {
        let prefix = prefix_of(config, &tensors, anchor)?;
        Ok(Self {
            builder: GraphBuilder::new(graph, "constant/"),
            scope: String::new(),
            tensors,
            prefix,
            infos: Vec::new(),
            recipes: Vec::new(),
            no_logits: None,
        })
    }

    /// The builder underneath, for declaring inputs and outputs and for small constants.
    pub(super) fn builder(&mut self) -> &mut GraphBuilder<'g> {
        &mut self.builder
    }

    /// Names of the nodes that follow start with this.
    pub(super) fn scope(&mut self, scope: impl Into<String>) {
        self.scope = scope.into();
    }

    /// Adds `op(inputs)` and returns its output's name.
    pub(super) fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> String {
        let number = self.builder.graph().node.len();
        let output = format!("{}/{op}_{number}", self.scope);
        self.builder.named_node(op, inputs, &output, attributes);
        output
    }

    /// Renames what the last node gives, and returns that name: how the graph's output gets its.
    pub(super) fn name_last(&mut self, name: &str) -> String {
        if let Some(node) = self.builder.graph().node.last_mut() {
            node.output = vec![name.to_owned()];
            node.name = format!("{name}.node");
        }
        name.to_owned()
    }

    /// `table[start..start + length]` along the first axis, `length` being a tensor of one i64.
    pub(super) fn rows(&mut self, table: &str, length: &str) -> String {
        let zero = self.builder.ints(&[0]);
        self.node("Slice", &[table, &zero, length, &zero], vec![])
    }

    /// `x[..., range]` along `axis`.
    pub(super) fn slice(&mut self, x: &str, axis: i64, range: Range<usize>) -> String {
        let start = self.builder.ints(&[range.start as i64]);
        let end = self.builder.ints(&[range.end as i64]);
        let axes = self.builder.ints(&[axis]);
        self.node("Slice", &[x, &start, &end, &axes], vec![])
    }

    /// `table[indices]` along `axis`.
    pub(super) fn gather(&mut self, table: &str, indices: &str, axis: i64) -> String {
        self.node("Gather", &[table, indices], vec![int("axis", axis)])
    }

    /// Whether the checkpoint holds the tensor.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.tensors.get(&self.full_name(name)).is_some()
    }

    /// The shape of a tensor that the checkpoint holds.
    pub(super) fn shape_of(&self, name: &str) -> Option<&[usize]> {
        let tensor = self.tensors.get(&self.full_name(name))?;
        Some(&tensor.shape)
    }

    /// A tensor that the checkpoint holds, with its name there.
    pub(super) fn source(&self, name: &str) -> Option<(String, &SourceTensor)> {
        let name = self.full_name(name);
        let tensor = self.tensors.get(&name)?;
        Some((name, tensor))
    }

    /// Builds with the checkpoint's names as they are: heads stand beside the model, not in it.
    pub(super) fn without_prefix<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> T {
        let prefix = std::mem::take(&mut self.prefix);
        let built = build(self);
        self.prefix = prefix;
        built
    }

    /// Remembers why the graph gives no logits, for whoever asks it for them.
    pub(super) fn explain_no_logits(&mut self, why: String) {
        self.no_logits = Some(why);
    }

    /// Why the graph gives no logits, if there is more to say than that it has none.
    pub(super) fn why_no_logits(&mut self) -> Option<String> {
        self.no_logits.take()
    }

    /// The tensor as it is.
    pub(super) fn weight(&mut self, name: &str, shape: &[usize]) -> Result<String> {
        let tensor = self.checked(name, shape)?;
        Ok(self.recipe(name.to_owned(), shape.to_vec(), Recipe::Copy { tensor }))
    }

    /// The tensor with 1 added to each number.
    pub(super) fn plus_one(&mut self, name: &str, shape: &[usize]) -> Result<String> {
        let tensor = self.checked(name, shape)?;
        let recipe = Recipe::PlusOne { tensor };
        Ok(self.recipe(format!("{name}.plus_one"), shape.to_vec(), recipe))
    }

    /// Rows `rows` of a matrix `[out, in]`, as `[in, rows]`.
    pub(super) fn transposed(
        &mut self,
        name: &str,
        shape: [usize; 2],
        rows: Range<usize>,
    ) -> Result<String> {
        let tensor = self.checked(name, &shape)?;
        let graph_name = if rows == (0..shape[0]) {
            format!("{name}.transposed")
        } else {
            format!("{name}.rows.{}.transposed", rows.start)
        };
        let out = vec![shape[1], rows.len()];
        Ok(self.recipe(graph_name, out, Recipe::Transposed { tensor, rows }))
    }

    /// Rows `rows` of a matrix, as they are.
    pub(super) fn rows_of(
        &mut self,
        name: &str,
        shape: [usize; 2],
        rows: Range<usize>,
    ) -> Result<String> {
        let tensor = self.checked(name, &shape)?;
        let graph_name = format!("{name}.rows.{}", rows.start);
        let out = vec![rows.len(), shape[1]];
        let elements = rows.start * shape[1]..rows.end * shape[1];
        Ok(self.recipe(graph_name, out, Recipe::Part { tensor, elements }))
    }

    /// The row of a token in a matrix `[out, in]`, less that of another where there is one, as `[in, 1]`.
    pub(super) fn row_less(
        &mut self,
        name: &str,
        shape: [usize; 2],
        LogitScore { yes, no }: LogitScore,
    ) -> Result<String> {
        let row = yes as usize;
        let Some(less) = no.map(|no| no as usize) else {
            return self.transposed(name, shape, row..row + 1);
        };
        let tensor = self.checked(name, &shape)?;
        let graph_name = format!("{name}.row.{row}.less.{less}");
        let recipe = Recipe::RowLess { tensor, row, less };
        Ok(self.recipe(graph_name, vec![shape[1], 1], recipe))
    }

    /// The kernel of a convolution over patches that do not overlap, `[out, channels, side, side]`, as `[patch, out]`.
    pub(super) fn patch_kernel(&mut self, name: &str, shape: [usize; 4]) -> Result<String> {
        let [out, channels, high, wide] = shape;
        let tensor = self.checked(name, &shape)?;
        let flat = vec![channels * high * wide, out];
        let recipe = Recipe::Transposed {
            tensor,
            rows: 0..out,
        };
        Ok(self.recipe(format!("{name}.transposed"), flat, recipe))
    }

    /// The rows of a tensor `[out, ...]` times the numbers of another, `[out]`; a matrix as `[in, out]`.
    pub(super) fn scaled(&mut self, name: &str, shape: &[usize], by: &str) -> Result<String> {
        let tensor = self.checked(name, shape)?;
        let by = self.checked(by, &shape[..1])?;
        let out = shape.iter().rev().copied().collect();
        Ok(self.recipe(format!("{name}.scaled"), out, Recipe::Scaled { tensor, by }))
    }

    /// Elements `elements` of a vector of `length`.
    pub(super) fn part(
        &mut self,
        name: &str,
        length: usize,
        elements: Range<usize>,
    ) -> Result<String> {
        if elements == (0..length) {
            return self.weight(name, &[length]);
        }
        let tensor = self.checked(name, &[length])?;
        let graph_name = format!("{name}.elements.{}", elements.start);
        let out = vec![elements.len()];
        Ok(self.recipe(graph_name, out, Recipe::Part { tensor, elements }))
    }

    /// The name in the checkpoint of a tensor that must have this shape.
    pub(super) fn checked(&self, name: &str, shape: &[usize]) -> Result<String> {
        let full = self.full_name(name);
        let SourceTensor {
            dtype,
            shape: found,
            ..
        } = self.tensors.get(&full).ok_or_else(|| EngineError::Weight {
            name: full.clone(),
            detail: format!(
                "{} does not hold it; config.json asks for shape {shape:?}",
                self.tensors.origin()
            ),
        })?;
        if found != shape {
            return Err(EngineError::Weight {
                name: full,
                detail: format!("config.json asks for shape {shape:?}, but it is {found:?}"),
            });
        }
        if !is_float(*dtype) {
            return Err(EngineError::Weight {
                name: full,
                detail: format!("it holds {dtype} but the model expects floats"),
            });
        }
        Ok(full)
    }

    /// Adds a weight made by `recipe`, or returns the one that is there already.
    pub(super) fn recipe(&mut self, name: String, shape: Vec<usize>, recipe: Recipe) -> String {
        if let Some(same) = self.recipes.iter().position(|known| *known == recipe) {
            return self.infos[same].name.clone();
        }
        self.infos.push(WeightInfo {
            name: name.clone(),
            dtype: dtype_of(&recipe),
            shape,
        });
        self.recipes.push(recipe);
        name
    }

    /// The weights named so far.
    pub(super) fn into_weights(self) -> ConvertedWeights {
        ConvertedWeights {
            tensors: self.tensors,
            infos: self.infos,
            recipes: self.recipes,
        }
    }

    fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// What stands before `anchor` in the checkpoint.
fn prefix_of(config: &Config, tensors: &TensorSet, anchor: &str) -> Result<String> {
    let mut prefixes = tensors.names().filter_map(|name| {
        name.strip_suffix(anchor)
            .filter(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    });
    match (prefixes.next(), prefixes.next()) {
        (Some(prefix), None) => Ok(prefix.to_owned()),
        (Some(one), Some(other)) => Err(config.unsupported(format!(
            "the checkpoint holds several models ({one}{anchor} and {other}{anchor})"
        ))),
        (None, _) => Err(EngineError::Weight {
            name: anchor.to_owned(),
            detail: format!("{} does not hold it", tensors.origin()),
        }),
    }
}
