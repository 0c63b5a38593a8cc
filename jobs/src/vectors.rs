//! The vectors of a chunk's texts, and the texts that have none.

use crate::compute::{Compute, Refusal};
use crate::error::{Error, Result};
use crate::retry::Retry;
use crate::rows::Chunk;

/// A text that every engine can embed: if it fails, the engine is at fault.
const PLAIN: &str = "a";

/// What became of texts or rows.
#[derive(Debug, PartialEq)]
pub(crate) struct Vectors {
    /// `[good texts, dim]`, in their order.
    pub(crate) values: Vec<f32>,
    /// For each text or row: why it has no vector, if it has none.
    pub(crate) reasons: Vec<Option<String>>,
}

/// Embeds texts, and finds those that cannot be embedded.
///
/// A text that the engine names is left out, and the others are tried again. Where the engine fails without a name, it is tried
/// again after a wait, and then with halves of the texts. A text that fails alone is to blame only if the engine embeds another.
///
/// # Errors
/// [`Error::Engine`] when the engine fails on everything.
pub(crate) fn embed(compute: &dyn Compute, texts: &[&str], retry: &Retry) -> Result<Vectors> {
    let mut vectors = Vectors {
        values: Vec::new(),
        reasons: vec![None; texts.len()],
    };
    let all: Vec<usize> = (0..texts.len()).collect();
    let mut search = Search {
        compute,
        texts,
        retry,
        works: false,
    };
    search.embed(&all, true, &mut vectors)?;
    Ok(vectors)
}

/// Embeds the texts of a chunk's rows. Every row has its reason, if it has no vector.
pub(crate) fn of_chunk(compute: &dyn Compute, chunk: &Chunk, retry: &Retry) -> Result<Vectors> {
    let texts = chunk.rows.iter().flat_map(|row| row.text.as_deref());
    let texts: Vec<&str> = texts.collect();
    let embedded = embed(compute, &texts, retry)?;
    let mut of_texts = embedded.reasons.into_iter();
    let reasons = chunk.rows.iter().map(|row| match &row.text {
        Ok(_) => of_texts.next().flatten(),
        Err(reason) => Some(reason.clone()),
    });
    Ok(Vectors {
        values: embedded.values,
        reasons: reasons.collect(),
    })
}

struct Search<'a> {
    compute: &'a dyn Compute,
    texts: &'a [&'a str],
    retry: &'a Retry,
    /// The engine was seen to embed something after it had failed.
    works: bool,
}

impl Search<'_> {
    /// Embeds the texts at these places, and appends to what there is.
    fn embed(&mut self, at: &[usize], patient: bool, vectors: &mut Vectors) -> Result<()> {
        let mut at = at.to_vec();
        while !at.is_empty() {
            let texts: Vec<&str> = at.iter().map(|&at| self.texts[at]).collect();
            let retry = Retry {
                retries: if patient { self.retry.retries } else { 0 },
                ..self.retry.clone()
            };
            let embedded = retry.run(
                "the engine",
                |reason: &Reason| matches!(reason.0, Refusal::Failed(_)),
                || self.once(&texts).map_err(Reason),
            );
            let (refusal, tries) = match embedded {
                Ok(values) => {
                    self.works = true;
                    vectors.values.extend(values);
                    return Ok(());
                }
                Err((Reason(refusal), tries)) => (refusal, tries),
            };
            match refusal {
                Refusal::Cancelled => return Err(Error::Stopped),
                _ if self.retry.observer.stopped() => return Err(Error::Stopped),
                Refusal::Text { index, reason } if index < at.len() => {
                    vectors.reasons[at.remove(index)] = Some(reason);
                }
                Refusal::Text { reason, .. } => return Err(Error::Engine { reason, tries }),
                Refusal::Failed(reason) if at.len() == 1 => {
                    if !self.works && self.once(&[PLAIN]).is_err() {
                        return Err(Error::Engine { reason, tries });
                    }
                    self.works = true;
                    vectors.reasons[at[0]] = Some(reason);
                    return Ok(());
                }
                Refusal::Failed(_) => {
                    let (first, second) = at.split_at(at.len() / 2);
                    self.embed(first, false, vectors)?;
                    return self.embed(second, false, vectors);
                }
            }
        }
        Ok(())
    }

    /// Embeds, and sees to it that there are as many numbers as there should be.
    fn once(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        let values = self.compute.embed(texts)?;
        let wanted = texts.len() * self.compute.dim();
        match values.len() == wanted {
            true => Ok(values),
            false => Err(Refusal::Failed(format!(
                "it gave {} numbers and not {wanted}",
                values.len()
            ))),
        }
    }
}

/// A refusal with words.
struct Reason(Refusal);

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Refusal::Text { reason, .. } | Refusal::Failed(reason) => f.write_str(reason),
            Refusal::Cancelled => f.write_str("cancelled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::time::Duration;

    use serde_json::Value;

    use super::*;

    /// Gives a text its length. Names a text with `bad`, fails on one with `ugly` without a name, and fails so many times at first.
    struct Lengths {
        dead: bool,
        fails: Mutex<u32>,
        calls: Mutex<Vec<usize>>,
    }

    impl Lengths {
        fn new(fails: u32) -> Self {
            Self {
                dead: false,
                fails: fails.into(),
                calls: Mutex::default(),
            }
        }
    }

    impl Compute for Lengths {
        fn fingerprint(&self) -> Value {
            "lengths".into()
        }

        fn dim(&self) -> usize {
            2
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
            self.calls.lock().unwrap().push(texts.len());
            let mut fails = self.fails.lock().unwrap();
            if *fails > 0 || self.dead {
                *fails = fails.saturating_sub(1);
                return Err(Refusal::Failed("not now".into()));
            }
            if let Some(index) = texts.iter().position(|text| text.contains("bad")) {
                let reason = format!("{:?} is bad", texts[index]);
                return Err(Refusal::Text { index, reason });
            }
            if texts.iter().any(|text| text.contains("ugly")) {
                return Err(Refusal::Failed("crashed".into()));
            }
            let lengths = texts.iter().map(|text| text.len() as f32);
            Ok(lengths.flat_map(|length| [length, -length]).collect())
        }
    }

    fn retry(retries: u32) -> Retry {
        Retry {
            retries,
            wait: Duration::ZERO,
            observer: Arc::new(()),
        }
    }

    fn values(lengths: &[f32]) -> Vec<f32> {
        lengths
            .iter()
            .flat_map(|&length| [length, -length])
            .collect()
    }

    #[test]
    fn texts_that_are_named_and_texts_that_are_not_are_found() {
        let texts = ["a", "bad", "ccc", "ugly", "eeeee", "very bad", "ugly too"];
        let vectors = embed(&Lengths::new(0), &texts, &retry(1)).unwrap();
        assert_eq!(vectors.values, values(&[1.0, 3.0, 5.0]));
        let reasons: Vec<_> = vectors.reasons.iter().map(Option::as_deref).collect();
        let expected = [
            None,
            Some("\"bad\" is bad"),
            None,
            Some("crashed"),
            None,
            Some("\"very bad\" is bad"),
            Some("crashed"),
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn a_failure_that_passes_costs_a_retry_and_no_row() {
        let engine = Lengths::new(2);
        let vectors = embed(&engine, &["a", "bb"], &retry(2)).unwrap();
        assert_eq!(vectors.values, values(&[1.0, 2.0]));
        assert_eq!(vectors.reasons, [None, None]);
        assert_eq!(*engine.calls.lock().unwrap(), [2, 2, 2]);
    }

    #[test]
    fn a_dead_engine_blames_no_text() {
        let engine = Lengths {
            dead: true,
            ..Lengths::new(0)
        };
        for texts in [&["a", "bb", "ccc"][..], &["a"]] {
            let error = embed(&engine, texts, &retry(1)).unwrap_err();
            assert!(matches!(error, Error::Engine { .. }), "{error}");
        }
    }

    #[test]
    fn a_lone_text_that_fails_is_to_blame_when_another_does_not() {
        let vectors = embed(&Lengths::new(0), &["ugly"], &retry(0)).unwrap();
        assert_eq!(vectors.reasons, [Some("crashed".into())]);
        assert!(vectors.values.is_empty());
    }
}
