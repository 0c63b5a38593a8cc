//! Tries techniques, and leaves as few nodes in f32 as the budget needs.

use std::fmt;

use serde::Serialize;

use super::{Budget, Figures, front};

/// How a model is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Technique {
    /// Nothing but what is done to every candidate: tokens are taken out.
    Tokens,
    /// Weights in 16 bits.
    F16,
    /// Weights in 8 bits.
    Int8,
    /// Matrices in 4 bits, and others in 16.
    Int4,
    /// Products of whole numbers, with scales of activations from texts or pictures, and other matrices in 16 bits.
    Int8Static,
    /// The same with scales of activations from each run.
    Int8Dynamic,
    /// The share that was asked for is taken out of columns, heads and layers, and weights are stored in 16 bits.
    Pruned,
    /// The same share is taken out, and products are of whole numbers with scales of activations from texts or pictures.
    PrunedInt8Static,
}

impl Technique {
    /// Whether a share of the bytes is taken out.
    pub fn prunes(self) -> bool {
        matches!(self, Self::Pruned | Self::PrunedInt8Static)
    }

    /// Whether single nodes can stay in f32. Where a share is taken out as well, that loses more than any node.
    pub fn has_nodes(self) -> bool {
        matches!(self, Self::Int8Static | Self::Int8Dynamic)
    }
}

/// As the options of `isovec optimize` write it.
impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "fewer tokens alone",
            Self::F16 => "--dtype f16",
            Self::Int8 => "--dtype int8",
            Self::Int4 => "--int4 --dtype f16",
            Self::Int8Static => "--int8 static --dtype f16",
            Self::Int8Dynamic => "--int8 dynamic --dtype f16",
            Self::Pruned => "--dtype f16, with --prune",
            Self::PrunedInt8Static => "--int8 static --dtype f16, with --prune",
        })
    }
}

/// A model that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// How.
    pub technique: Technique,
    /// So many of the nodes that lose most stay in f32, beside those that always do.
    pub kept: usize,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.technique.fmt(f)?;
        match self.kept {
            0 => Ok(()),
            1 => f.write_str(", 1 node in f32"),
            kept => write!(f, ", {kept} nodes in f32"),
        }
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// It was made and measured.
    Measured {
        /// What was measured.
        figures: Figures,
        /// How many of its nodes could stay in f32 and leave another one.
        nodes: usize,
    },
    /// It cannot be made, for this reason.
    Refused(String),
}

/// A candidate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The candidate.
    pub candidate: Candidate,
    /// What became of it.
    pub tried: Tried,
    /// Whether it is on the [front](front()) of all that were measured.
    pub front: bool,
}

impl Point {
    /// What was measured, where it was made.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.tried {
            Tried::Measured { figures, .. } => Some(figures),
            Tried::Refused(_) => None,
        }
    }
}

/// Measures candidates of these techniques, in the order in which they are returned.
///
/// Of a technique the candidate without kept nodes comes first. Where that one's vectors keep the budget, or it is too large or too
/// slow already, nothing more is tried: nodes in f32 make a model larger and slower. Else 1, 2, 4, … nodes are kept, those that lose
/// most first, until the vectors keep the budget or it costs too much, and halving the distance between the last two finds the fewest
/// nodes.
///
/// # Errors
/// Those of `measure`. A candidate that cannot be made is [`Tried::Refused`].
pub async fn search<E>(
    budget: &Budget,
    techniques: &[Technique],
    mut measure: impl AsyncFnMut(Candidate) -> Result<Tried, E>,
) -> Result<Vec<Point>, E> {
    let mut points = Vec::new();
    for &technique in techniques {
        let (mut fails, mut keeps, mut most) = (0, None, 0);
        let mut kept = 0;
        loop {
            let candidate = Candidate { technique, kept };
            let tried = measure(candidate).await?;
            let verdict = match &tried {
                Tried::Refused(_) => Verdict::Over,
                Tried::Measured { figures, nodes } => {
                    if kept == 0 {
                        most = *nodes;
                    }
                    Verdict::of(budget, figures)
                }
            };
            points.push(Point {
                candidate,
                tried,
                front: false,
            });
            match verdict {
                Verdict::Like => keeps = Some(kept),
                // Between this one and one that is alike no node is worth a try, where the cost is too high already.
                Verdict::Over if keeps.is_none() => break,
                Verdict::Over | Verdict::Unlike => fails = kept,
            }
            kept = match keeps {
                Some(keeps) if keeps <= fails + 1 => break,
                Some(keeps) => fails + (keeps - fails) / 2,
                None if kept >= most => break,
                None => (2 * kept).clamp(1, most),
            };
        }
    }
    let figures: Vec<Figures> = points.iter().filter_map(Point::figures).copied().collect();
    let mut on = front(&figures).into_iter();
    for point in points.iter_mut().filter(|point| point.figures().is_some()) {
        point.front = on.next().unwrap_or_default();
    }
    Ok(points)
}

/// What a candidate says of those with more nodes in f32.
enum Verdict {
    /// Its vectors keep the budget: no more nodes are needed.
    Like,
    /// They do not: more nodes may help.
    Unlike,
    /// They do not, and it costs too much: more nodes do not help.
    Over,
}

impl Verdict {
    fn of(budget: &Budget, figures: &Figures) -> Self {
        match (budget.is_like(figures), budget.is_affordable(figures)) {
            (true, _) => Self::Like,
            (false, true) => Self::Unlike,
            (false, false) => Self::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::tests::{budget, figures};
    use super::*;

    /// A model of 12 nodes: each that stays in f32 gives 0.01 of cosine, and costs 10 bytes and a tenth of the speed.
    fn found(bounds: &[&str], techniques: &[Technique], nodes: usize) -> Vec<Point> {
        let measure = async |candidate: Candidate| {
            assert!(candidate.kept <= nodes, "{candidate}");
            let kept = candidate.kept as f64;
            Ok::<_, Infallible>(match candidate.technique {
                Technique::Int8Static => Tried::Measured {
                    figures: figures(
                        0.9 + 0.01 * kept,
                        100 + 10 * candidate.kept as u64,
                        2.0 - kept / 10.0,
                    ),
                    nodes,
                },
                Technique::F16 => Tried::Measured {
                    figures: figures(0.999, 500, 1.0),
                    nodes: 0,
                },
                other => Tried::Refused(other.to_string()),
            })
        };
        pollster::block_on(search(&budget(bounds), techniques, measure)).unwrap()
    }

    fn kept(points: &[Point]) -> Vec<usize> {
        points.iter().map(|point| point.candidate.kept).collect()
    }

    const FIXED: [Technique; 1] = [Technique::Int8Static];

    #[test]
    fn as_few_nodes_are_kept_as_the_budget_needs() {
        // 0.955 needs six of them: 1, 2 and 4 are too few, 8 are enough, and so are 6; 5 are not.
        let points = found(&["cosine>=0.955"], &FIXED, 11);
        assert_eq!(kept(&points), [0, 1, 2, 4, 8, 6, 5]);
        let budget = budget(&["cosine>=0.955"]);
        let chosen = budget.choice(1000, &points).unwrap();
        assert_eq!(points[chosen].candidate.kept, 6);
        // The last one is tried, and none beyond.
        assert_eq!(
            kept(&found(&["cosine>=0.99"], &FIXED, 10)),
            [0, 1, 2, 4, 8, 10, 9]
        );
        assert_eq!(kept(&found(&["cosine>=0.999"], &FIXED, 3)), [0, 1, 2, 3]);
    }

    #[test]
    fn no_node_is_kept_where_none_has_to_be_or_the_cost_is_too_high() {
        assert_eq!(kept(&found(&["cosine>=0.9"], &FIXED, 11)), [0]);
        assert_eq!(
            kept(&found(&["cosine>=0.95", "size<=99B"], &FIXED, 11)),
            [0]
        );
        // 120 bytes are two nodes.
        let points = found(&["cosine>=0.95", "size<=120B"], &FIXED, 11);
        assert_eq!(kept(&points), [0, 1, 2, 4]);
        // 8 nodes are too large and alike enough; 6 are neither, so it is 7 that ends the search.
        let points = found(&["cosine>=0.965", "size<=155B"], &FIXED, 11);
        assert_eq!(kept(&points), [0, 1, 2, 4, 8, 6, 7]);
        assert_eq!(
            budget(&["cosine>=0.965", "size<=155B"]).choice(1000, &points),
            None
        );
    }

    #[test]
    fn what_cannot_be_made_is_said_and_the_others_are_measured() {
        let all = [
            Technique::Int8Dynamic,
            Technique::F16,
            Technique::Int8Static,
        ];
        let points = found(&["cosine>=0.9"], &all, 5);
        assert_eq!(
            points[0].tried,
            Tried::Refused("--int8 dynamic --dtype f16".into())
        );
        let front: Vec<bool> = points.iter().map(|point| point.front).collect();
        assert_eq!(front, [false, true, true]);
        let shown: Vec<String> = points.iter().map(|p| p.candidate.to_string()).collect();
        assert_eq!(shown[2], "--int8 static --dtype f16");
        let one = Candidate {
            technique: Technique::Int8Static,
            kept: 1,
        };
        assert_eq!(one.to_string(), "--int8 static --dtype f16, 1 node in f32");
    }

    #[test]
    fn an_error_ends_the_search() {
        let mut asked = 0;
        let measure = async |_| {
            asked += 1;
            Err("full")
        };
        let found = pollster::block_on(search(&budget(&["cosine>=0.9"]), &FIXED, measure));
        assert_eq!((found.unwrap_err(), asked), ("full", 1));
    }
}
