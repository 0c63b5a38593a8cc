//! A search for a model that keeps bounds: how like the original, how small and how fast it has to be.
//!
//! 1. [`Bound`]s are parsed of words such as `cosine>=0.995`, and make a [`Budget`].
//! 2. [`search()`] tries one [`Technique`] after the other. Where one loses too much, the nodes that lose most stay in f32: as few as
//!    the budget needs. Whoever calls it makes and measures the candidates.
//! 3. [`front()`] says which of them no other beats, and [`Budget::choice`] which one to take.

mod bound;
mod front;
mod search;

use serde::Serialize;

use crate::error::{OptimizeError, Result};

pub use bound::{Bound, Figure};
pub use front::front;
pub use search::{Candidate, Point, Technique, Tried, search};

/// What was measured of a model. Where it reads pictures, a text stands for a picture, and of a classifier a vector for its logits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// The smallest cosine of a text's vectors before and after.
    pub cosine: f64,
    /// Of the ten texts nearest to each text, the share that is the same before and after; `None` below 11 texts.
    pub recall: Option<f64>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Seconds of a text, in a call of its own.
    pub latency: Span,
    /// How many times as fast as the original it is.
    pub speedup: Span,
}

/// A measured value, and the interval that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Span {
    /// The value.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Bounds that a model has to keep, at most one of each figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Budget {
    bounds: Vec<Bound>,
}

impl Budget {
    /// Of these bounds.
    ///
    /// # Errors
    /// [`OptimizeError::Bound`] for none, and for two of one figure.
    pub fn new(bounds: impl IntoIterator<Item = Bound>) -> Result<Self> {
        let bounds: Vec<Bound> = bounds.into_iter().collect();
        let wrong = |given: String, reason: &str| {
            Err(OptimizeError::Bound {
                given,
                reason: reason.into(),
            })
        };
        if bounds.is_empty() {
            return wrong(String::new(), "a budget has at least one bound");
        }
        for (at, bound) in bounds.iter().enumerate() {
            if bounds[..at]
                .iter()
                .any(|other| other.figure == bound.figure)
            {
                return wrong(bound.to_string(), "this figure has another bound already");
            }
        }
        Ok(Self { bounds })
    }

    /// Its bounds.
    pub fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    /// The bound of a figure.
    pub fn of(&self, figure: Figure) -> Option<Bound> {
        let mut bounds = self.bounds.iter().copied();
        bounds.find(|bound| bound.figure == figure)
    }

    /// The bounds that a model misses, each with the [share](Bound::missing) of the limit.
    pub fn missed<'b>(&'b self, figures: &'b Figures) -> impl Iterator<Item = (Bound, f64)> + 'b {
        let bounds = self.bounds.iter();
        bounds.filter_map(|bound| Some((*bound, bound.missing(figures)?)))
    }

    /// Whether a model keeps them all.
    pub fn is_met(&self, figures: &Figures) -> bool {
        self.missed(figures).next().is_none()
    }

    /// Whether a model keeps those of what its vectors are like.
    fn is_like(&self, figures: &Figures) -> bool {
        !self
            .missed(figures)
            .any(|(bound, _)| bound.figure.is_quality())
    }

    /// Whether a model keeps those of bytes and time.
    fn is_affordable(&self, figures: &Figures) -> bool {
        self.missed(figures)
            .all(|(bound, _)| bound.figure.is_quality())
    }

    /// The place of the model to take: of those that keep all bounds the fastest. Where the intervals of speed overlap with that of
    /// the fastest, the smallest of these, then the one with the greatest cosine. One that is neither smaller than the original, of
    /// so many bytes, nor faster is not taken. `None`: there is none.
    pub fn choice(&self, original: u64, points: &[Point]) -> Option<usize> {
        let met = |&(_, figures): &(usize, &Figures)| {
            self.is_met(figures) && (figures.bytes < original || figures.speedup.low > 1.0)
        };
        let met: Vec<(usize, &Figures)> = measured(points).filter(met).collect();
        let fastest = met
            .iter()
            .max_by(|a, b| f64::total_cmp(&a.1.speedup.estimate, &b.1.speedup.estimate))?;
        let least = fastest.1.speedup.low;
        let alike = met
            .iter()
            .filter(|(_, figures)| figures.speedup.high >= least);
        let best = alike.min_by(|(_, a), (_, b)| {
            let smaller = a.bytes.cmp(&b.bytes);
            smaller.then(f64::total_cmp(&b.cosine, &a.cosine))
        })?;
        Some(best.0)
    }

    /// The place of the model that comes nearest: the fewest bounds missed, then the smallest sum of the shares. `None`: none was
    /// measured.
    pub fn nearest(&self, points: &[Point]) -> Option<usize> {
        let far = |figures: &Figures| {
            let missed = self.missed(figures);
            missed.fold((0, 0.0), |(count, sum), (_, share)| {
                (count + 1, sum + share)
            })
        };
        let nearest = measured(points).min_by(|(_, a), (_, b)| {
            let (a, b) = (far(a), far(b));
            a.0.cmp(&b.0).then(f64::total_cmp(&a.1, &b.1))
        });
        nearest.map(|(place, _)| place)
    }
}

fn measured(points: &[Point]) -> impl Iterator<Item = (usize, &Figures)> {
    let points = points.iter().enumerate();
    points.filter_map(|(place, point)| Some((place, point.figures()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn budget(bounds: &[&str]) -> Budget {
        Budget::new(bounds.iter().map(|bound| bound.parse().unwrap())).unwrap()
    }

    pub(super) fn figures(cosine: f64, bytes: u64, speedup: f64) -> Figures {
        let around = |estimate: f64| Span {
            estimate,
            low: estimate * 0.9,
            high: estimate * 1.1,
        };
        Figures {
            cosine,
            recall: None,
            bytes,
            latency: around(0.01 / speedup),
            speedup: around(speedup),
        }
    }

    fn points(all: &[Figures]) -> Vec<Point> {
        let all = all.iter().map(|&figures| Point {
            candidate: Candidate {
                technique: Technique::F16,
                kept: 0,
            },
            tried: Tried::Measured { figures, nodes: 0 },
            front: false,
        });
        all.collect()
    }

    #[test]
    fn a_budget_has_bounds_and_each_figure_once() {
        let refused = |bounds: &[&str]| {
            let bounds = bounds.iter().map(|bound| bound.parse().unwrap());
            Budget::new(bounds).unwrap_err().to_string()
        };
        assert!(refused(&[]).contains("at least one"));
        let twice = refused(&["size<=1MB", "cosine>=0.9", "size<=2MB"]);
        assert!(
            twice.contains("size<=2MB") && twice.contains("another bound"),
            "{twice}"
        );
    }

    #[test]
    fn the_fastest_that_keeps_all_bounds_is_taken_and_of_equals_the_smallest() {
        let budget = budget(&["cosine>=0.9"]);
        // The fourth is faster and loses too much. The third cannot be told from the second, and is smaller.
        let all = points(&[
            figures(0.95, 100, 1.5),
            figures(0.95, 90, 2.0),
            figures(0.91, 50, 1.9),
            figures(0.89, 10, 4.0),
        ]);
        assert_eq!(budget.choice(100, &all), Some(2));
        assert_eq!(budget.choice(100, &all[..2]), Some(1));
        // Of equal size and speed the more alike.
        let equal = points(&[figures(0.91, 50, 2.0), figures(0.99, 50, 2.0)]);
        assert_eq!(budget.choice(100, &equal), Some(1));
        // What is neither smaller nor surely faster is refused.
        let useless = points(&[figures(0.99, 100, 1.05)]);
        assert_eq!(budget.choice(100, &useless), None);
        assert_eq!(budget.choice(101, &useless), Some(0));
        let faster = points(&[figures(0.99, 100, 1.2)]);
        assert_eq!(budget.choice(100, &faster), Some(0));
    }

    #[test]
    fn the_nearest_misses_the_fewest_bounds_by_the_least() {
        let budget = budget(&["cosine>=0.9", "size<=50B", "latency<=5ms"]);
        let all = points(&[
            figures(0.80, 60, 4.0),
            figures(0.95, 75, 4.0),
            figures(0.95, 60, 4.0),
        ]);
        assert_eq!(budget.nearest(&all), Some(2));
        let missed: Vec<_> = budget.missed(all[0].figures().unwrap()).collect();
        assert_eq!(missed.len(), 2);
        assert!((missed[0].1 - 1.0 / 9.0).abs() < 1e-12 && (missed[1].1 - 0.2).abs() < 1e-12);
        assert_eq!(budget.nearest(&[]), None);
    }
}
