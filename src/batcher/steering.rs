//! Adjusts the size of batches to measured times.
//!
//! A caller waits at most for the current run and then for its own, so a target latency is met if one run takes no
//! more than about half of it. Smaller batches do not help if the queue grows (they make it grow faster). The
//! steering therefore uses the time of a run, and uses the share of late answers only to correct its aim.

use std::time::Duration;

/// The part of the target that one run may take.
const SHARE_OF_A_RUN: f64 = 0.45;
/// A caller that waits for a larger part of the target is in a queue of more than the next batch takes. A smaller batch would not
/// make its answer come sooner, and would make those behind it come later.
const SHARE_OF_A_WAIT: f64 = 0.5;
/// How much a new measurement counts against all before it.
const WEIGHT: f64 = 0.1;
/// How much larger the next batch may be than the last.
const STEP: f64 = 1.1;
/// Answers between two corrections of the aim.
const ANSWERS: u32 = 64;
/// Late answers out of [`ANSWERS`] from which the aim is taken back: 3%, so that a steady state
/// stays under 5%.
const LATE: u32 = 2;
/// How far the aim is taken back at most: when all answers are late, more comes than can be done,
/// and batches that are smaller still would only make it less.
const LEAST_PART: f64 = 0.5;
/// Batches between two tries of another size, when throughput is the aim.
const BATCHES_A_TRY: u32 = 16;
/// By how much more a second a larger batch has to be worth it.
const WORTH_MORE: f64 = 1.02;

/// How many positions (rows times the longest row) a batch may have, steered below a bound.
#[derive(Debug)]
pub(super) struct Steering {
    most: f64,
    target: f64,
    aim: Aim,
    /// With a fraction, so that small steps add up.
    positions: f64,
}

#[derive(Debug)]
enum Aim {
    Latency(Latency),
    Throughput(Throughput),
}

impl Steering {
    /// Batches of at most `most` positions that keep `target`, or, with `throughput`, that give
    /// the most positions a second.
    pub(super) fn new(most: usize, target: Duration, throughput: bool) -> Self {
        let most = most.max(1) as f64;
        Self {
            most,
            target: target.as_secs_f64(),
            aim: if throughput {
                Aim::Throughput(Throughput::default())
            } else {
                Aim::Latency(Latency::default())
            },
            positions: most,
        }
    }

    /// Batches may have so many positions from now on.
    pub(super) fn allow(&mut self, most: usize) {
        self.most = most.max(1) as f64;
        self.positions = self.positions.min(self.most);
    }

    /// Positions that the next batch may have.
    pub(super) fn positions(&self) -> usize {
        self.positions as usize
    }

    /// A batch of so many positions ran.
    pub(super) fn ran(&mut self, positions: usize, took: Duration) {
        let (ran, seconds) = (positions.max(1) as f64, took.as_secs_f64());
        match &mut self.aim {
            Aim::Latency(aim) => {
                // Down at once, up in steps: too large is late for all in the batch, too small
                // costs a little time.
                let wanted = aim.ran(ran, seconds, self.target);
                let next = wanted.min(self.positions * STEP + 1.0);
                self.positions = next.clamp(1.0, self.most);
            }
            Aim::Throughput(aim) => {
                // A batch that was not nearly full says nothing of the size.
                if ran * 1.5 > self.positions
                    && let Some(factor) = aim.ran(self.positions, ran, seconds)
                {
                    self.positions = (self.positions * factor).clamp(1.0, self.most);
                }
            }
        }
    }

    /// A caller was answered after so long, of which it waited so long until its texts were picked.
    pub(super) fn answered(&mut self, after: Duration, waited: Duration) {
        if let Aim::Latency(aim) = &mut self.aim {
            let (after, waited) = (after.as_secs_f64(), waited.as_secs_f64());
            let crowded = waited > self.target * SHARE_OF_A_WAIT;
            aim.answered(after > self.target && !crowded);
        }
    }
}

/// What a run takes, as a line through what was measured lately.
#[derive(Debug)]
struct Latency {
    /// Moving means of positions, seconds, and their products.
    means: Option<Means>,
    /// The part of the target that is aimed at, taken back when answers come late.
    part: f64,
    answers: u32,
    late: u32,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            means: None,
            part: 1.0,
            answers: 0,
            late: 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Means {
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Means {
    fn of(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            xx: x * x,
            xy: x * y,
        }
    }

    fn add(&mut self, x: f64, y: f64) {
        let new = Self::of(x, y);
        self.x += (new.x - self.x) * WEIGHT;
        self.y += (new.y - self.y) * WEIGHT;
        self.xx += (new.xx - self.xx) * WEIGHT;
        self.xy += (new.xy - self.xy) * WEIGHT;
    }

    /// Seconds for no position, and for each. Where the sizes hardly differ, and where a line
    /// would say that more takes less, everything is put down to the positions.
    fn line(&self) -> (f64, f64) {
        let each = self.y / self.x;
        let spread = self.xx - self.x * self.x;
        let slope = (self.xy - self.x * self.y) / spread;
        if spread > 0.01 * self.x * self.x && slope > 0.0 && slope < each {
            (self.y - slope * self.x, slope)
        } else {
            (0.0, each)
        }
    }
}

impl Latency {
    /// The positions that would take the share of the target which a run may take.
    fn ran(&mut self, positions: f64, seconds: f64, target: f64) -> f64 {
        let means = self
            .means
            .get_or_insert_with(|| Means::of(positions, seconds));
        means.add(positions, seconds);
        let (fixed, each) = means.line();
        (target * self.part * SHARE_OF_A_RUN - fixed) / each.max(f64::MIN_POSITIVE)
    }

    fn answered(&mut self, late: bool) {
        self.answers += 1;
        self.late += u32::from(late);
        if self.answers >= ANSWERS {
            let factor = if self.late > LATE { 0.8 } else { 1.05 };
            self.part = (self.part * factor).clamp(LEAST_PART, 1.0);
            (self.answers, self.late) = (0, 0);
        }
    }
}

/// Climbs towards the size beyond which more a batch is not more a second.
#[derive(Debug, Default)]
struct Throughput {
    /// The size before this one, and its positions a second.
    before: Option<(f64, f64)>,
    positions: f64,
    seconds: f64,
    batches: u32,
    growing: bool,
}

impl Throughput {
    /// The factor for the next size, once this one was tried long enough.
    fn ran(&mut self, size: f64, positions: f64, seconds: f64) -> Option<f64> {
        self.positions += positions;
        self.seconds += seconds;
        self.batches += 1;
        if self.batches < BATCHES_A_TRY {
            return None;
        }
        let rate = self.positions / self.seconds.max(f64::MIN_POSITIVE);
        (self.positions, self.seconds, self.batches) = (0.0, 0.0, 0);
        let better = match self.before {
            // The larger of the two has to be worth its memory and its latency.
            Some((was, before)) if size > was => rate > before * WORTH_MORE,
            Some((_, before)) => rate * WORTH_MORE > before,
            None => true,
        };
        if !better {
            self.growing = !self.growing;
        }
        self.before = Some((size, rate));
        Some(if self.growing { 1.25 } else { 0.8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(100);

    /// A machine that takes `fixed` seconds a batch and `each` more for every position, and is
    /// never idle.
    fn run(steering: &mut Steering, fixed: f64, each: f64, batches: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        for _ in 0..batches {
            let positions = steering.positions();
            sizes.push(positions);
            let took = Duration::from_secs_f64(fixed + each * positions as f64);
            steering.ran(positions, took);
            // Each waits for the run before its own.
            for _ in 0..8 {
                steering.answered(took * 2, took);
            }
        }
        sizes
    }

    #[test]
    fn a_latency_is_kept_through_steps_of_load_and_the_size_settles() {
        let mut steering = Steering::new(4096, TARGET, false);
        for each in [0.0001, 0.001, 0.0002] {
            let sizes = run(&mut steering, 0.002, each, 400);
            let settled = &sizes[200..];
            let (low, high) = (settled.iter().min().unwrap(), settled.iter().max().unwrap());
            assert!(high - low <= high / 20 + 1, "{each}: {low} to {high}");
            let worst = 2.0 * (0.002 + each * *high as f64);
            assert!(worst <= TARGET.as_secs_f64(), "{each}: {worst}");
            assert!(
                worst >= 0.7 * TARGET.as_secs_f64(),
                "{each}: {worst} is too careful"
            );
        }
    }

    #[test]
    fn the_bounds_hold_whatever_is_measured() {
        let mut slow = Steering::new(256, Duration::from_millis(1), false);
        assert_eq!(run(&mut slow, 0.1, 0.1, 200).last(), Some(&1));
        let mut fast = Steering::new(256, Duration::from_secs(1), false);
        assert_eq!(run(&mut fast, 0.0, 1e-9, 200).last(), Some(&256));
        fast.ran(0, Duration::ZERO);
        assert!((1..=256).contains(&fast.positions()));
    }

    #[test]
    fn small_batches_do_not_make_a_large_one_look_slow() {
        // Nearly everything is fixed; what comes is one text at a time and then a crowd.
        let mut steering = Steering::new(4096, TARGET, false);
        for positions in (0..200).map(|turn| 8 + turn % 8) {
            steering.ran(
                positions,
                Duration::from_secs_f64(0.01 + 1e-5 * positions as f64),
            );
        }
        assert!(steering.positions() > 2000, "{}", steering.positions());
    }

    #[test]
    fn answers_that_come_late_take_the_aim_back() {
        let mut steering = Steering::new(4096, TARGET, false);
        run(&mut steering, 0.0, 0.0001, 200);
        let before = steering.positions();
        // Something else makes a tenth of the answers late: runs are as fast as ever.
        for answer in 0..640 {
            let late = answer % 10 == 0;
            let after = if late { TARGET * 2 } else { TARGET / 2 };
            steering.answered(after, TARGET / 4);
            let positions = steering.positions();
            steering.ran(positions, Duration::from_secs_f64(1e-4 * positions as f64));
        }
        let after = steering.positions();
        assert!(after < before, "{after} of {before}");
    }

    /// The sizes before and after two thousand answers that come five times later than they should.
    fn late(waited: Duration) -> (usize, usize) {
        let mut steering = Steering::new(4096, TARGET, false);
        let sizes = run(&mut steering, 0.004, 0.0001, 200);
        for _ in 0..2000 {
            steering.answered(TARGET * 5, waited);
            let positions = steering.positions();
            let took = Duration::from_secs_f64(0.004 + 1e-4 * positions as f64);
            steering.ran(positions, took);
        }
        (sizes[199], steering.positions())
    }

    #[test]
    fn too_much_load_leaves_batches_as_they_are() {
        // The queue grows: every answer is late, whatever the batch.
        let (before, after) = late(TARGET * 4);
        assert!(after >= before, "{after} of {before}");
    }

    #[test]
    fn answers_that_are_late_without_a_queue_do_not_shrink_batches_to_nothing() {
        let (before, after) = late(TARGET / 4);
        assert!(
            after < before && after * 5 > before * 2,
            "{after} of {before}"
        );
    }

    #[test]
    fn throughput_climbs_while_a_larger_batch_is_worth_it() {
        let mean = |sizes: &[usize]| sizes.iter().sum::<usize>() / sizes.len();
        // A large fixed cost: the larger the better.
        let mut steering = Steering::new(4096, TARGET, true);
        let sizes = run(&mut steering, 0.01, 1e-6, 2000);
        assert!(mean(&sizes[1000..]) >= 2000, "{}", mean(&sizes[1000..]));
        // Nothing fixed: no size is better than another, so small ones do.
        let mut steering = Steering::new(4096, TARGET, true);
        let sizes = run(&mut steering, 0.0, 1e-4, 2000);
        assert!(mean(&sizes[1000..]) <= 64, "{}", mean(&sizes[1000..]));
    }
}
