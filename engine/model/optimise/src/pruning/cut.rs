//! Writes a model without what was taken out.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::GraphProto;
use isovec_engine::tensor::DType;

use super::graph::Graph;
use super::region::Region;
use crate::error::Result;
use crate::rewriting::{Rewriting, node};
use crate::source::{Form, kept};

/// What becomes of a region.
#[derive(Debug, Clone)]
pub(super) enum Fate {
    /// These units stay, in their order, and the rows of the last matrix are these.
    Kept { units: Vec<usize>, matrix: Vec<f32> },
    /// It is left out as a whole.
    Gone,
}

/// The model with these regions changed.
pub(super) async fn cut(bundle: &ModelBundle, fates: &[(&Region, Fate)]) -> Result<ModelBundle> {
    let empty = GraphProto::default();
    let proto = bundle.graph.graph.as_ref().unwrap_or(&empty);
    let graph = Graph::of(bundle, proto);
    let mut parts = Rewriting::new(bundle, proto, "isovec pruning 1");
    // New names of inputs, by node and place.
    let mut renamed = BTreeMap::new();
    // Values that others stand for now, by the node that makes them.
    let mut instead = BTreeMap::new();
    // Groups of convolutions.
    let mut groups = Vec::new();
    for (region, fate) in fates {
        parts.identify(region.matrix.as_bytes());
        let (units, matrix) = match fate {
            Fate::Kept { units, matrix } => (units, matrix),
            Fate::Gone => {
                if let Some((value, stream)) = &region.skip
                    && let Some(at) = graph.maker(value)
                {
                    parts.identify(b"gone");
                    instead.insert(at, node("Identity", &[stream], &[value], None));
                }
                continue;
            }
        };
        units
            .iter()
            .for_each(|unit| parts.identify(&unit.to_le_bytes()));
        for cut in &region.cuts {
            let places = units
                .iter()
                .flat_map(|unit| unit * cut.per..(unit + 1) * cut.per);
            let places: Arc<[usize]> = places.collect();
            let mut shape = graph
                .constant(&cut.name)
                .map_or_else(Vec::new, |constant| constant.shape);
            let name = format!("{}.kept", cut.name);
            let name = match graph.weight(&cut.name) {
                Some(weight) => {
                    shape[cut.axis] = places.len();
                    let axis = cut.axis;
                    let form = Form::Kept {
                        weight,
                        axis,
                        places,
                    };
                    parts.replace(weight, &name, DType::F32, &shape, form)
                }
                None => {
                    let values = kept(&graph.floats(&cut.name).await?, &shape, cut.axis, &places);
                    shape[cut.axis] = places.len();
                    parts.f32s(&name, &shape, &values)
                }
            };
            renamed.insert((cut.node, cut.place), name);
        }
        let (values, shape) = region.constant_of(matrix, units.len() * region.size);
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        parts.identify(&bytes);
        let name = format!("{}.kept", region.matrix);
        let name = match graph.weight(&region.matrix) {
            Some(weight) => {
                parts.replace(weight, &name, DType::F32, &shape, Form::Bytes(bytes.into()))
            }
            None => parts.constant(&name, DType::F32, &shape, bytes),
        };
        renamed.insert((region.product, 1), name);
        groups.extend(region.groups.iter().map(|&at| (at, units.len() as i64)));
        let mut extents: BTreeMap<(usize, usize), (&String, Vec<i64>)> = BTreeMap::new();
        for shape in &region.shapes {
            let values = || (&shape.name, graph.ints(&shape.name).unwrap_or_default());
            let (_, values) = extents
                .entry((shape.node, shape.place))
                .or_insert_with(values);
            values[shape.at] = (units.len() * shape.per) as i64;
        }
        for (place, (name, values)) in extents {
            let bytes = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            let name = format!("{name}.kept");
            renamed.insert(
                place,
                parts.constant(&name, DType::I64, &[values.len()], bytes),
            );
        }
    }
    Ok(parts.finish(|graph| {
        for ((node, place), name) in renamed {
            graph.node[node].input[place] = name;
        }
        for (at, node) in instead {
            graph.node[at] = node;
        }
        for (at, count) in groups {
            let attributes = graph.node[at].attribute.iter_mut();
            let group = attributes.filter(|attribute| attribute.name == "group");
            group.for_each(|group| group.i = count);
        }
    }))
}
