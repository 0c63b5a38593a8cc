//! Replicas in turn, each as often as its weight says.

use std::task::Context;

use tower::Service;
use tower::ready_cache::ReadyCache;

use crate::attempt::Attempt;
use crate::way::Way;

/// Those in rotation, and how far each is behind. Every choice gives each candidate its weight and takes the sum of all from
/// the chosen one, so that turns of a heavy replica are spread between those of others (nginx's smooth weighted round robin,
/// <https://github.com/nginx/nginx/commit/52327e0627f49dbda1e8db695e63a4b0af4448b1>).
#[derive(Debug)]
pub(crate) struct Turns {
    ready: ReadyCache<usize, Way, Attempt>,
    behind: Vec<i64>,
}

impl Turns {
    pub(crate) fn new(ways: Vec<Way>) -> Self {
        let behind = vec![0; ways.len()];
        let mut ready = ReadyCache::default();
        for (at, way) in ways.into_iter().enumerate() {
            ready.push(at, way);
        }
        Self { ready, behind }
    }

    /// Takes the request and sends it to the replica whose turn it is; leaves it there if there is none.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context<'_>,
        attempt: &mut Option<Attempt>,
    ) -> Option<<Way as Service<Attempt>>::Future> {
        // Replicas are never lost, only unready.
        let _ = self.ready.poll_pending(cx);
        while let Some(at) = self.next() {
            // One that has just left the rotation is ready no more, and waits with the others.
            if let Ok(true) = self.ready.check_ready(cx, &at) {
                return Some(self.ready.call_ready(&at, attempt.take()?));
            }
        }
        None
    }

    fn next(&mut self) -> Option<usize> {
        let candidate =
            |(at, way): (&usize, &Way)| (*at, way.replica.target.weight(), way.replica.is_full());
        let mut candidates: Vec<(usize, u32, bool)> =
            self.ready.iter_ready().map(candidate).collect();
        // Full ones have their turn when all are.
        if candidates.iter().any(|(.., full)| !full) {
            candidates.retain(|(.., full)| !full);
        }
        candidates.sort_unstable();
        choose(
            &mut self.behind,
            candidates
                .iter()
                .map(|&(at, weight, _)| (at, i64::from(weight))),
        )
    }
}

/// The candidate that is furthest behind, of places with their weights.
fn choose(behind: &mut [i64], candidates: impl Iterator<Item = (usize, i64)>) -> Option<usize> {
    let (mut chosen, mut sum) = (None, 0);
    for (at, weight) in candidates {
        sum += weight;
        behind[at] += weight;
        if chosen.is_none_or(|best: usize| behind[at] > behind[best]) {
            chosen = Some(at);
        }
    }
    if let Some(at) = chosen {
        behind[at] -= sum;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_kept_and_turns_are_spread() {
        let mut behind = vec![0; 3];
        let weights = [(0, 5), (1, 1), (2, 1)];
        let turns: Vec<_> = (0..7)
            .filter_map(|_| choose(&mut behind, weights.into_iter()))
            .collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(behind, [0, 0, 0]);
        // One that is gone has no turn.
        let turns: Vec<_> = (0..4)
            .filter_map(|_| choose(&mut behind, [(1, 1), (2, 1)].into_iter()))
            .collect();
        assert_eq!(turns, [1, 2, 1, 2]);
        assert_eq!(choose(&mut behind, std::iter::empty()), None);
    }
}
