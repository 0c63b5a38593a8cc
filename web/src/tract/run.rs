//! One run of a loaded model, operator by operator.

use std::sync::Arc;

use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::profile::Detail;
use isovec_engine::tensor::NamedTensor;
use isovec_engine::{EngineError, Result};
use tract_linalg::multithread::{Executor as OpPool, multithread_tract_scope};
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::Cost;
use tract_onnx::tract_core::ops::array::Gather;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::ops::source::TypedSource;

use super::{groups, panics, tensors};
use crate::ENGINE;
use crate::compiled::{Compiled, Running};

/// A model ready to run. Runs share nothing that changes: each has a state of its own.
#[derive(Debug)]
pub(crate) struct Plan {
    plan: Arc<TypedSimplePlan>,
    steps: Vec<Step>,
    pool: OpPool,
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// What the operators with the most arithmetic take, in multiply-adds, by the batch's extents.
    costs: Vec<TDim>,
    /// Rows may be run a few at a time.
    splits: bool,
}

/// One operator, and the values that nothing needs after it.
#[derive(Debug)]
struct Step {
    node: usize,
    dead: Vec<usize>,
}

impl Plan {
    /// Orders a model's operators so that little is held at once.
    ///
    /// # Errors
    /// [`EngineError::Runtime`] when there is no such order.
    pub(crate) fn new(
        model: TypedModel,
        inputs: Vec<String>,
        outputs: Vec<String>,
        pool: OpPool,
        splits: bool,
    ) -> Result<Self> {
        let plan = panics::runtime("ordering the operators", || {
            TypedSimplePlan::new(model).map_err(|error| failed("ordering the operators", &error))
        })?;
        let steps = steps(&plan);
        let costs = costs(plan.model());
        Ok(Self {
            plan,
            costs,
            steps,
            pool,
            inputs,
            outputs,
            splits,
        })
    }

    /// Multiply-adds of the heaviest operator over one row as long as the batch's.
    fn row_cost(&self, batch: &Batch) -> u64 {
        let mut extents = SymbolValues::default();
        for (index, name) in self.inputs.iter().enumerate() {
            let (Ok(fact), Some(tensor)) = (self.plan.model().input_fact(index), batch.input(name))
            else {
                continue;
            };
            for (axis, (dim, &extent)) in fact.shape.iter().zip(tensor.shape()).enumerate() {
                if let TDim::Sym(symbol) = dim {
                    extents.set(symbol, if axis == 0 { 1 } else { extent as i64 });
                }
            }
        }
        let costs = self.costs.iter();
        let costs = costs.filter_map(|cost| u64::try_from(cost.eval(&extents).to_i64().ok()?).ok());
        costs.max().unwrap_or(0)
    }
}

impl Compiled for Plan {
    fn provider(&self) -> &'static str {
        crate::provider::of_tract()
    }

    fn version(&self) -> String {
        super::VERSION.to_owned()
    }

    fn rows_together(&self, batch: &Batch) -> usize {
        match self.splits {
            true => groups::per_group(self.row_cost(batch)),
            false => usize::MAX,
        }
    }

    fn start(self: Arc<Self>, batch: Batch) -> Result<Box<dyn Running>> {
        self.begin(batch).map(|run| Box::new(run) as _)
    }
}

impl Plan {
    /// Starts a run.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] when the batch does not fit the model.
    fn begin(self: &Arc<Self>, batch: Batch) -> Result<Run> {
        let mut inputs: TVec<TValue> = tvec!();
        for name in &self.inputs {
            let tensor = batch.input(name).ok_or_else(|| EngineError::InvalidInput {
                name: name.clone(),
                detail: "is missing from the batch".into(),
            })?;
            inputs.push(tensors::to_runtime(name, tensor)?.into_tvalue());
        }
        let mut state = panics::runtime("starting a run", || {
            self.plan
                .spawn()
                .map_err(|error| failed("starting a run", &error))
        })?;
        panics::runtime("taking the batch", || {
            state
                .set_inputs(inputs)
                .map_err(|error| EngineError::InvalidInput {
                    name: self.inputs.join(", "),
                    detail: format!("{error:#}"),
                })
        })?;
        self.seed(&mut state);
        Ok(Run {
            plan: Arc::clone(self),
            state,
            next: 0,
            batch,
        })
    }
}

impl Plan {
    /// tract puts its constants into a state when the first input comes, and a model may have none.
    fn seed(&self, state: &mut TypedSimpleState) {
        let values = &mut state.turn_state.values;
        if !values.is_empty() {
            return;
        }
        let nodes = self.plan.model().nodes.iter();
        *values = nodes
            .map(|node| {
                let constant = node.op_as::<Const>()?;
                Some(tvec!(Arc::clone(constant.val()).into_tvalue()))
            })
            .collect();
    }
}

/// The different costs of a model's operators, those of one operator only once.
fn costs(model: &TypedModel) -> Vec<TDim> {
    let mut costs = Vec::new();
    for node in &model.nodes {
        let Ok(facts) = model.node_input_facts(node.id) else {
            continue;
        };
        for (cost, amount) in node.op.cost(&facts).unwrap_or_default() {
            if matches!(cost, Cost::FMA(_)) && !costs.contains(&amount) {
                costs.push(amount);
            }
        }
    }
    costs
}

/// The model's operators in order, each with what dies there.
fn steps(plan: &TypedSimplePlan) -> Vec<Step> {
    let model = plan.model();
    let mut last_reader = vec![None; model.nodes.len()];
    let order = plan.order_without_consts();
    for (step, &node) in order.iter().enumerate() {
        last_reader[node] = Some(step);
        for input in &model.nodes[node].inputs {
            last_reader[input.node] = Some(step);
        }
    }
    for output in &model.outputs {
        last_reader[output.node] = None;
    }
    let mut steps: Vec<Step> = order
        .iter()
        .map(|&node| Step {
            node,
            dead: Vec::new(),
        })
        .collect();
    for &node in order {
        if let Some(step) = last_reader[node] {
            steps[step].dead.push(node);
        }
    }
    steps
}

/// A run under way.
struct Run {
    plan: Arc<Plan>,
    state: TypedSimpleState,
    next: usize,
    batch: Batch,
}

impl Running for Run {
    fn step(&mut self, cancel: &Cancel, _sliced: bool) -> Result<bool> {
        cancel.check()?;
        let plan = Arc::clone(&self.plan);
        let Some(step) = plan.steps.get(self.next) else {
            return Ok(false);
        };
        self.next += 1;
        let begun = self.batch.scope.operator();
        multithread_tract_scope(plan.pool.clone(), || self.compute(step))?;
        if let Some(begun) = begun {
            let name = plan.plan.model().nodes[step.node].op.name().into_owned();
            self.batch.scope.ran(begun, name, Detail::None);
        }
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> Result<RunOutput> {
        let values = self
            .state
            .outputs()
            .map_err(|error| failed("reading the outputs", &error))?;
        let outputs = self
            .plan
            .outputs
            .iter()
            .zip(&values)
            .map(|(name, value)| {
                Ok(NamedTensor::new(
                    name.clone(),
                    tensors::from_runtime(name, value)?,
                ))
            })
            .collect::<Result<_>>()?;
        Ok(RunOutput {
            outputs,
            inputs: self.batch.inputs,
            row_lengths: self.batch.row_lengths,
        })
    }
}

impl Run {
    fn compute(&mut self, step: &Step) -> Result<()> {
        let node = &self.plan.plan.model().nodes[step.node];
        let inputs = self
            .state
            .prepare_inputs(step.node)
            .map_err(|error| failed("gathering an operator's inputs", &error))?;
        if let Some(gather) = node.op_as::<Gather>() {
            check_indices(&node.name, gather, &inputs)?;
        }
        // Before the operator runs: whoever reads a value last may write over it.
        for &dead in step.dead.iter().filter(|&&dead| dead != step.node) {
            self.state.turn_state.values[dead] = None;
        }
        self.state
            .compute_one_with_inputs(step.node, inputs)
            .map_err(|error| failed("running the model", &error))?;
        self.learn_symbols(step.node);
        if step.dead.contains(&step.node) {
            self.state.turn_state.values[step.node] = None;
        }
        Ok(())
    }

    /// Extents that only a value can tell (how many elements are not zero) are known from here.
    fn learn_symbols(&mut self, node: usize) {
        let state = &mut self.state;
        let node = &self.plan.plan.model().nodes[node];
        if node.op_is::<TypedSource>() {
            return;
        }
        let Some(values) = state.turn_state.values[node.id].as_ref() else {
            return;
        };
        for (output, value) in node.outputs.iter().zip(values) {
            for (dim, &extent) in output.fact.shape.iter().zip(value.shape()) {
                if let TDim::Sym(symbol) = dim
                    && state.turn_state.resolved_symbols.get(symbol).is_none()
                {
                    state.turn_state.resolved_symbols.set(symbol, extent as i64);
                }
            }
        }
    }
}

/// The runtime takes a gather's indices on trust, and panics on one outside the table. In the
/// browser a panic is the end of the whole instance.
fn check_indices(name: &str, gather: &Gather, inputs: &[TValue]) -> Result<()> {
    let [table, indices] = inputs else {
        return Ok(());
    };
    let Some(&rows) = table.shape().get(gather.axis) else {
        return Ok(());
    };
    let indices = indices
        .cast_to::<i64>()
        .map_err(|error| failed("reading indices", &error))?;
    let indices = indices
        .try_as_plain_ram()
        .and_then(|plain| plain.as_slice::<i64>())
        .map_err(|error| failed("reading indices", &error))?;
    let rows = rows as i64;
    match indices
        .iter()
        .find(|&&index| index >= rows || index < -rows)
    {
        None => Ok(()),
        Some(index) => Err(EngineError::InvalidInput {
            name: name.to_owned(),
            detail: format!(
                "an index of {index} points outside a table of {rows} rows; the ids come from \
                 another tokenizer, or the input is longer than the model's positions"
            ),
        }),
    }
}

fn failed(doing: &'static str, error: &TractError) -> EngineError {
    EngineError::Runtime {
        engine: ENGINE,
        doing,
        detail: format!("{error:#}"),
    }
}
