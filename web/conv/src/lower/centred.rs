//! A layer normalisation that an exporter spread over several operators: `(x - mean) / sqrt(mean of (x - mean)² + epsilon)` of each
//! pixel's channels.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use crate::error::Why;
use crate::node::Op;
use crate::value::{Axis, Data, Moment, Value};

impl Lowerer<'_> {
    /// The mean over the channels, where they are the last axis.
    pub(super) fn mean_of_channels(
        &self,
        data: &Data,
        axes: &[usize],
        keep: bool,
    ) -> Option<Value> {
        let last = data.axes.len().checked_sub(1)?;
        let is = axes == [last] && data.axes[last] == Axis::Channel && keep;
        is.then(|| Value::Moment {
            of: data.clone(),
            moment: Moment::Mean,
        })
    }

    /// What an operator makes of a step on the way; `None` where it reads none.
    ///
    /// # Errors
    /// If it is not the next step.
    pub(super) fn centred(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Value>> {
        let next = match (call.optional(0), call.optional(1)) {
            (
                Some(Value::Data(x)),
                Some(Value::Moment {
                    of,
                    moment: Moment::Mean,
                }),
            ) if operator == "Sub" && x == of => (of, Moment::Centred),
            (
                Some(Value::Moment {
                    of,
                    moment: Moment::Centred,
                }),
                Some(Value::Moment {
                    of: other,
                    moment: Moment::Deviation(epsilon),
                }),
            ) if operator == "Div" && of == other => {
                let map = self.builder.map(of.node);
                let op = Op::Norm {
                    x: of.node,
                    gamma: vec![1.0; map.channels],
                    beta: None,
                    epsilon: *epsilon,
                };
                let node = self.builder.push(op, map);
                return Ok(Some(self.data(node, &of.axes)));
            }
            (
                Some(Value::Moment {
                    of,
                    moment: Moment::Centred,
                }),
                Some(Value::Moment {
                    of: other,
                    moment: Moment::Centred,
                }),
            ) if operator == "Mul" && of == other => (of, Moment::Squares),
            (Some(Value::Moment { of, moment }), _) => {
                let moment = match (operator, *moment) {
                    ("Pow", Moment::Centred) if call.number(1)? == Some(2.0) => Moment::Squares,
                    ("ReduceMean", Moment::Squares) => {
                        let axes = call.whole_numbers("axes", 1)?.unwrap_or_default();
                        let rank = of.axes.len();
                        let (1, Some(&at)) = (axes.len(), axes.first()) else {
                            return Err(format!("a mean over axes {axes:?}").into());
                        };
                        let keep = call.node.int("keepdims").unwrap_or(1) != 0;
                        if axis(at, rank)? + 1 != rank || !keep {
                            return Err("a mean over another axis than the channels".into());
                        }
                        Moment::Variance(0.0)
                    }
                    ("Add", Moment::Variance(before)) => {
                        let more = call.number(1)?.ok_or("it adds nothing")?;
                        Moment::Variance(before + more as f32)
                    }
                    ("Sqrt", Moment::Variance(epsilon)) => Moment::Deviation(epsilon),
                    _ => return Err("it is no step of a normalisation".into()),
                };
                (of, moment)
            }
            (_, Some(Value::Moment { .. })) => {
                return Err("it is no step of a normalisation".into());
            }
            _ => return Ok(None),
        };
        let (of, moment) = next;
        Ok(Some(Value::Moment {
            of: of.clone(),
            moment,
        }))
    }
}
