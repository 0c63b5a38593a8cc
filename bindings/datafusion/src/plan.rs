//! The rule that puts calls of these functions where they are computed once, and for as few rows as the query allows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection, ScalarUDF, Sort, SortExpr};
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::error::Error;

/// The rule's name.
pub(crate) const NAME: &str = "isovec_once";

/// Moves calls of these functions:
///
/// - equal calls of a projection or a filter into a projection below it, where one column holds their values;
/// - all calls of an `ORDER BY` likewise: DataFusion has asynchronous functions in projections, filters and the arguments of
///   aggregates alone;
/// - conditions with calls behind those without.
///
/// What is left elsewhere is an error that says so, in place of one in the middle of the query.
#[derive(Debug)]
pub(crate) struct Once {
    functions: Vec<Arc<ScalarUDF>>,
}

impl Once {
    /// For those of these functions that are asynchronous.
    pub(crate) fn of(functions: &[Arc<ScalarUDF>]) -> Self {
        let asynchronous = functions.iter().filter(|all| all.as_async().is_some());
        Self {
            functions: asynchronous.cloned().collect(),
        }
    }

    fn is_call(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::ScalarFunction(ScalarFunction { func, .. }) if self.functions.contains(func))
    }

    fn has_call(&self, expr: &Expr) -> Result<bool> {
        expr.exists(|expr| Ok(self.is_call(expr)))
    }

    /// The calls in expressions, each once, with their number.
    fn calls<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> Result<Vec<(Expr, usize)>> {
        let mut calls: Vec<(Expr, usize)> = Vec::new();
        for expr in exprs {
            expr.apply(|expr| {
                if self.is_call(expr) {
                    match calls.iter_mut().find(|(call, _)| call == expr) {
                        Some((_, count)) => *count += 1,
                        None => calls.push((expr.clone(), 1)),
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(calls)
    }

    fn repeated<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> Result<Vec<Expr>> {
        let calls = self.calls(exprs)?.into_iter();
        let repeated = calls.filter(|(_, count)| *count > 1);
        Ok(repeated.map(|(call, _)| call).collect())
    }

    fn sorted(&self, sort: Sort, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let calls = self.calls(sort.expr.iter().map(|sort| &sort.expr))?;
        if calls.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Sort(sort)));
        }
        let calls = calls.into_iter().map(|(call, _)| call).collect();
        let columns = columns(&sort.input);
        let (computed, input) = Computed::below(calls, sort.input, config)?;
        let exprs = sort.expr.into_iter().map(|sort| {
            let expr = computed.used(sort.expr)?;
            Ok(SortExpr { expr, ..sort })
        });
        let sorted = LogicalPlan::Sort(Sort {
            expr: exprs.collect::<Result<_>>()?,
            input,
            fetch: sort.fetch,
        });
        project(columns, sorted).map(Transformed::yes)
    }

    fn projected(
        &self,
        projection: Projection,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let calls = self.repeated(&projection.expr)?;
        if calls.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Projection(projection)));
        }
        let (computed, input) = Computed::below(calls, projection.input, config)?;
        let exprs = projection.expr.into_iter();
        let exprs = exprs.map(|expr| computed.used_under_its_name(expr));
        let exprs = exprs.collect::<Result<_>>()?;
        let projected = Projection::try_new_with_schema(exprs, input, projection.schema)?;
        Ok(Transformed::yes(LogicalPlan::Projection(projected)))
    }

    fn filtered(
        &self,
        filter: Filter,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for condition in split_conjunction_owned(filter.predicate.clone()) {
            match self.has_call(&condition)? {
                true => with.push(condition),
                false => without.push(condition),
            }
        }
        let Some(with) = conjunction(with) else {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        };
        let calls = self.repeated([&with])?;
        if without.is_empty() && calls.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let input = match conjunction(without) {
            None => filter.input,
            Some(cheap) => Arc::new(LogicalPlan::Filter(Filter::try_new(cheap, filter.input)?)),
        };
        if calls.is_empty() {
            let filtered = Filter::try_new(with, input)?;
            return Ok(Transformed::yes(LogicalPlan::Filter(filtered)));
        }
        let columns = columns(&input);
        let (computed, input) = Computed::below(calls, input, config)?;
        let filtered = Filter::try_new(computed.used(with)?, input)?;
        project(columns, LogicalPlan::Filter(filtered)).map(Transformed::yes)
    }

    /// Refuses calls in a node that cannot compute them.
    fn refuse(&self, exprs: &[Expr], place: &'static str) -> Result<()> {
        match self.calls(exprs)?.into_iter().next() {
            Some((Expr::ScalarFunction(call), _)) => Err(Error::Place {
                function: call.func.name().to_owned(),
                place,
            }
            .into()),
            _ => Ok(()),
        }
    }
}

impl OptimizerRule for Once {
    fn name(&self) -> &str {
        NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Sort(sort) => return self.sorted(sort, config),
            LogicalPlan::Projection(projection) => return self.projected(projection, config),
            LogicalPlan::Filter(filter) => return self.filtered(filter, config),
            _ => {}
        }
        let place = match &plan {
            // The arguments of aggregates are computed; those of others' nodes are theirs.
            LogicalPlan::Aggregate(_) => "GROUP BY",
            LogicalPlan::Extension(_) | LogicalPlan::TableScan(_) => {
                return Ok(Transformed::no(plan));
            }
            LogicalPlan::Join(_) => "the condition of a JOIN",
            LogicalPlan::Window(_) => "a window function",
            LogicalPlan::Values(_) => "VALUES",
            _ => "this part of a query",
        };
        match &plan {
            LogicalPlan::Aggregate(aggregate) => self.refuse(&aggregate.group_expr, place)?,
            other => self.refuse(&other.expressions(), place)?,
        }
        Ok(Transformed::no(plan))
    }
}

/// Calls, and the columns that hold their values.
struct Computed(Vec<(Expr, Column)>);

impl Computed {
    /// A projection that has the columns of `input` and one for each call.
    fn below(
        calls: Vec<Expr>,
        input: Arc<LogicalPlan>,
        config: &dyn OptimizerConfig,
    ) -> Result<(Self, Arc<LogicalPlan>)> {
        let mut exprs = columns(&input);
        let mut computed = Vec::new();
        for call in calls {
            let name = config.alias_generator().next("__isovec");
            exprs.push(call.clone().alias(&name));
            computed.push((call, Column::from_name(name)));
        }
        let projection = Projection::try_new(exprs, input)?;
        Ok((
            Self(computed),
            Arc::new(LogicalPlan::Projection(projection)),
        ))
    }

    /// An expression with columns in place of its calls.
    fn used(&self, expr: Expr) -> Result<Expr> {
        let used = expr.transform_down(|expr| {
            let known = self.0.iter().find(|(call, _)| *call == expr);
            Ok(match known {
                Some((_, column)) => Transformed::yes(Expr::Column(column.clone())),
                None => Transformed::no(expr),
            })
        });
        used.map(|used| used.data)
    }

    /// The same, under the name that it has as a column.
    fn used_under_its_name(&self, expr: Expr) -> Result<Expr> {
        let (qualifier, name) = expr.qualified_name();
        let used = self.used(expr)?;
        Ok(
            match used.qualified_name() == (qualifier.clone(), name.clone()) {
                true => used,
                false => used.alias_qualified(qualifier, name),
            },
        )
    }
}

/// The columns of a plan.
fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    let columns = plan.schema().iter();
    columns.map(|column| Expr::Column(column.into())).collect()
}

fn project(columns: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
    let projection = Projection::try_new(columns, Arc::new(input))?;
    Ok(LogicalPlan::Projection(projection))
}
