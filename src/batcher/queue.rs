//! A fair queue for the texts of many callers.
//!
//! Each caller has its own list of waiting texts. The caller that was given the fewest tokens so far is served first,
//! and a new caller starts with that caller's count. A caller with ten thousand texts therefore takes turns with one
//! that has a single text (start-time fair queuing, Goyal, Vin and Cheng 1996, with batches in the place of packets).
//! The rest of the batch is filled with texts of about the same length, because padding wastes time. Where nothing is padded, the
//! next callers fill it, whatever the lengths.
//!
//! Callers of low priority have a line of their own. Their texts fill what the others leave of a batch; a batch begins with one of
//! them if no other waits, and else each eighth time, so that they come on under any load.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use crate::plan::{Budget, rows_within};

/// A caller's place, in the order of arrival.
pub(super) type Ticket = u64;

/// Callers that are looked at to fill a batch, for each of its rows: more would find texts whose
/// lengths fit better, and take time from all that wait.
const CALLERS_A_ROW: usize = 4;

/// Callers that are looked at for a text that fits what is left of a batch without padding.
const CALLERS_A_TEXT: usize = 16;

/// Batches in a row that begin with a caller of normal priority while one of low priority waits.
const BEFORE_LOW: u32 = 7;

/// Whose texts come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Priority {
    #[default]
    Normal,
    /// What can wait.
    Low,
}

impl Priority {
    fn other(self) -> Self {
        match self {
            Self::Normal => Self::Low,
            Self::Low => Self::Normal,
        }
    }
}

/// The callers of one priority.
#[derive(Debug, Default)]
struct Line {
    /// Those that wait, least served first.
    order: BTreeSet<(u64, Ticket)>,
    /// The count of tokens with which a new caller starts.
    clock: u64,
}

/// A text on its way into a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Picked<T> {
    pub(super) ticket: Ticket,
    /// Its place among the caller's texts.
    pub(super) index: usize,
    /// In positions.
    pub(super) length: usize,
    pub(super) item: T,
}

#[derive(Debug)]
struct Waiting<T> {
    priority: Priority,
    /// Tokens that this caller was given.
    served: u64,
    /// Length, place and text, the longest last.
    texts: Vec<(usize, usize, T)>,
}

impl<T> Waiting<T> {
    fn longest(&self) -> usize {
        self.texts.last().map_or(0, |text| text.0)
    }

    /// How many of the texts are no longer than `length`: they stand first.
    fn up_to(&self, length: usize) -> usize {
        self.texts.partition_point(|text| text.0 <= length)
    }
}

/// Texts that wait to be run.
#[derive(Debug)]
pub(super) struct Queue<T> {
    callers: HashMap<Ticket, Waiting<T>>,
    /// The same callers.
    normal: Line,
    low: Line,
    /// Batches that began with others while callers of low priority waited.
    passed: u32,
    texts: usize,
    tokens: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            callers: HashMap::new(),
            normal: Line::default(),
            low: Line::default(),
            passed: 0,
            texts: 0,
            tokens: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Texts that wait.
    pub(super) fn texts(&self) -> usize {
        self.texts
    }

    /// Their tokens, at least one a text.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Who has waited longest. It looks at every caller: it is asked for while there are too few for a batch.
    pub(super) fn oldest(&self) -> Option<Ticket> {
        self.callers.keys().min().copied()
    }

    fn line(&mut self, priority: Priority) -> &mut Line {
        match priority {
            Priority::Normal => &mut self.normal,
            Priority::Low => &mut self.low,
        }
    }

    fn waiting(&self, priority: Priority) -> &BTreeSet<(u64, Ticket)> {
        match priority {
            Priority::Normal => &self.normal.order,
            Priority::Low => &self.low.order,
        }
    }

    /// Takes a caller's texts with their lengths in tokens. A ticket is used once.
    pub(super) fn push(
        &mut self,
        ticket: Ticket,
        priority: Priority,
        texts: impl IntoIterator<Item = (usize, T)>,
    ) {
        let mut texts: Vec<(usize, usize, T)> = texts
            .into_iter()
            .enumerate()
            .map(|(index, (length, item))| (length.max(1), index, item))
            .collect();
        if texts.is_empty() {
            return;
        }
        texts.sort_unstable_by_key(|&(length, index, _)| (length, Reverse(index)));
        self.texts += texts.len();
        self.tokens += texts.iter().map(|text| text.0).sum::<usize>();
        let line = self.line(priority);
        let served = line.clock;
        line.order.insert((served, ticket));
        let waiting = Waiting {
            priority,
            served,
            texts,
        };
        self.callers.insert(ticket, waiting);
    }

    /// Gives up a caller's place: the texts that still wait are gone.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        if let Some(caller) = self.callers.remove(&ticket) {
            let line = self.line(caller.priority);
            line.order.remove(&(caller.served, ticket));
            self.texts -= caller.texts.len();
            self.tokens -= caller.texts.iter().map(|text| text.0).sum::<usize>();
        }
    }

    /// The next batch: the longest text of whoever was given least, and others within the budget, of
    /// about its length unless rows are ragged. Empty when nobody waits. `fits` says whether so many rows
    /// of such a length fit into memory; a single row is taken anyway, for its run to refuse.
    pub(super) fn pick(
        &mut self,
        budget: Budget,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Vec<Picked<T>> {
        let turn = self.turn();
        let Some(&(served, first)) = self.waiting(turn).first() else {
            return Vec::new();
        };
        self.line(turn).clock = served;
        let longest = self.callers.get(&first).map_or(0, Waiting::longest);
        if budget.ragged {
            return self.pick_in_turn(turn, first, budget, fits);
        }
        let rows = rows_within(budget, longest, fits).min(self.texts);
        let mut picked = Vec::with_capacity(rows);
        for ticket in self.nearest(turn, longest, rows) {
            picked.extend(self.take(ticket, longest));
        }
        picked
    }

    /// The next batch where rows are computed at their own length: of whoever was given least, each time
    /// the longest text that still fits.
    fn pick_in_turn(
        &mut self,
        turn: Priority,
        first: Ticket,
        budget: Budget,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Vec<Picked<T>> {
        let mut picked: Vec<Picked<T>> = self.take(first, usize::MAX).into_iter().collect();
        let mut longest = picked.iter().map(|text| text.length).sum();
        let mut positions = longest;
        for priority in [turn, turn.other()] {
            while picked.len() < budget.rows {
                let room = if picked.len() < budget.least {
                    usize::MAX
                } else {
                    budget.tokens.at(longest).saturating_sub(positions)
                };
                let Some((ticket, length)) = self.next_within(priority, room) else {
                    break;
                };
                longest = longest.max(length);
                if !fits(picked.len() + 1, longest) {
                    return picked;
                }
                positions += length;
                picked.extend(self.take(ticket, length));
            }
        }
        picked
    }

    /// Of the first callers, the first that has a text of so many positions at most, and the longest of these.
    fn next_within(&self, priority: Priority, room: usize) -> Option<(Ticket, usize)> {
        let callers = self.waiting(priority).iter().take(CALLERS_A_TEXT);
        let mut tickets = callers.map(|&(_, ticket)| ticket);
        tickets.find_map(|ticket| {
            let caller = self.callers.get(&ticket)?;
            let text = caller.up_to(room).checked_sub(1)?;
            Some((ticket, caller.texts[text].0))
        })
    }

    /// Whose caller the next batch begins with.
    fn turn(&mut self) -> Priority {
        let (normal, low) = (&self.normal.order, &self.low.order);
        let turn = match (normal.is_empty(), low.is_empty()) {
            (_, true) => Priority::Normal,
            (true, false) => Priority::Low,
            (false, false) if self.passed >= BEFORE_LOW => Priority::Low,
            (false, false) => {
                self.passed += 1;
                return Priority::Normal;
            }
        };
        self.passed = 0;
        turn
    }

    /// The owners of up to `rows` texts no longer than `longest` and nearest to it, a ticket for each text. Those whose turn it is come
    /// before the others; equal lengths go to whoever was given less.
    fn nearest(&self, turn: Priority, longest: usize, rows: usize) -> Vec<Ticket> {
        let mut tickets = self.nearest_of(turn, longest, rows);
        if tickets.len() < rows {
            let others = self.nearest_of(turn.other(), longest, rows - tickets.len());
            tickets.extend(others);
        }
        tickets
    }

    fn nearest_of(&self, priority: Priority, longest: usize, rows: usize) -> Vec<Ticket> {
        let shortest = longest.saturating_sub(slack(longest));
        let mut found: Vec<(Reverse<usize>, usize, Ticket)> = Vec::with_capacity(rows);
        let callers = self.waiting(priority).iter();
        let callers = callers.take(rows.saturating_mul(CALLERS_A_ROW));
        for (rank, &(_, ticket)) in callers.enumerate() {
            let Some(caller) = self.callers.get(&ticket) else {
                continue;
            };
            let fitting = caller.texts[..caller.up_to(longest)].iter().rev();
            let near = fitting.take_while(|text| text.0 >= shortest);
            found.extend(near.take(rows).map(|text| (Reverse(text.0), rank, ticket)));
            if found.len() >= rows.saturating_mul(CALLERS_A_ROW) {
                break;
            }
        }
        // The first caller's longest text is of the greatest length and the lowest rank, so it
        // is never among those that are cut off.
        found.sort_unstable();
        found.truncate(rows);
        found.into_iter().map(|(_, _, ticket)| ticket).collect()
    }

    /// Takes the longest text of a caller that is no longer than `longest`.
    fn take(&mut self, ticket: Ticket, longest: usize) -> Option<Picked<T>> {
        let caller = self.callers.get_mut(&ticket)?;
        let at = caller.up_to(longest).checked_sub(1)?;
        let (length, index, item) = caller.texts.remove(at);
        self.texts -= 1;
        self.tokens -= length;
        let (priority, before) = (caller.priority, caller.served);
        caller.served += length as u64;
        let after = caller.served;
        let is_done = caller.texts.is_empty();
        let order = &mut self.line(priority).order;
        order.remove(&(before, ticket));
        if is_done {
            self.callers.remove(&ticket);
        } else {
            order.insert((after, ticket));
        }
        Some(Picked {
            ticket,
            index,
            length,
            item,
        })
    }
}

/// How much shorter than the longest a text may be to be padded to it: a run of its own costs
/// about as much as eight tokens do, and above that an eighth is a good trade.
fn slack(longest: usize) -> usize {
    8 + longest / 8
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::Tokens;

    const BUDGET: Budget = Budget {
        rows: 4,
        tokens: Tokens::same(64),
        least: 1,
        ragged: false,
    };
    const RAGGED: Budget = Budget {
        ragged: true,
        ..BUDGET
    };

    fn any(_: usize, _: usize) -> bool {
        true
    }

    fn lengths(queue: &mut Queue<usize>) -> Vec<usize> {
        let picked = queue.pick(BUDGET, any);
        picked.into_iter().map(|text| text.item).collect()
    }

    fn pushed(callers: &[&[usize]]) -> Queue<usize> {
        let mut queue = Queue::default();
        for (ticket, texts) in callers.iter().enumerate() {
            queue.push(
                ticket as u64,
                Priority::Normal,
                texts.iter().map(|&length| (length, length)),
            );
        }
        queue
    }

    #[test]
    fn texts_of_like_length_run_together() {
        let mut queue = pushed(&[&[16], &[60], &[15], &[14, 15], &[13]]);
        assert_eq!(lengths(&mut queue), [16, 15, 15, 14]);
        assert_eq!(lengths(&mut queue), [60]);
        assert_eq!(lengths(&mut queue), [13]);
        assert!(lengths(&mut queue).is_empty());
        assert_eq!((queue.texts(), queue.tokens()), (0, 0));
    }

    #[test]
    fn a_caller_with_many_texts_takes_turns_with_one_who_has_few() {
        let mut queue = pushed(&[&[16; 100]]);
        lengths(&mut queue);
        queue.push(7, Priority::Normal, [(60, 60)]);
        queue.push(8, Priority::Normal, [(61, 61)]);
        let turns: Vec<usize> = (0..4).map(|_| lengths(&mut queue)[0]).collect();
        assert_eq!(turns, [60, 61, 16, 16]);
    }

    #[test]
    fn what_can_wait_fills_what_others_leave_and_comes_on_all_the_same() {
        let mut queue = pushed(&[&[16], &[15]]);
        queue.push(7, Priority::Low, [(16, 1), (16, 2), (16, 3)]);
        assert_eq!(lengths(&mut queue), [16, 15, 1, 2]);
        // No other waits.
        assert_eq!(lengths(&mut queue), [3]);
        // There are always others, who leave no room.
        queue.push(8, Priority::Low, [(30, 7)]);
        for ticket in 10..100 {
            queue.push(ticket, Priority::Normal, [(60, 60)]);
        }
        let mut turns = (0..).map(|_| lengths(&mut queue)[0]);
        assert_eq!(turns.position(|first| first == 7), Some(7));
        assert_eq!(turns.next(), Some(60));
    }

    #[test]
    fn what_does_not_fit_into_memory_is_not_put_together() {
        let mut queue = pushed(&[&[10; 4]]);
        let two = queue.pick(BUDGET, |rows, length| rows * length <= 20);
        assert_eq!(two.len(), 2);
        let one = queue.pick(BUDGET, |_, _| false);
        assert_eq!(one.len(), 1, "left to its run to refuse");
    }

    #[test]
    fn what_is_not_padded_runs_together_whatever_its_length() {
        let mut queue = pushed(&[&[16], &[60], &[15], &[14, 15], &[13]]);
        let mut pick = || -> Vec<usize> {
            let picked = queue.pick(RAGGED, any);
            picked.into_iter().map(|text| text.item).collect()
        };
        // 60 finds no room beside 16, and 14 none beside the four.
        assert_eq!(pick(), [16, 15, 15, 13]);
        assert_eq!(pick(), [60]);
        assert_eq!(pick(), [14]);
        assert!(pick().is_empty());
    }

    #[test]
    fn a_longer_text_joins_a_shorter_one_where_both_fit_into_memory() {
        let pick = |most: usize| {
            let mut queue = pushed(&[&[2], &[50], &[3]]);
            let fits = |rows, length| rows * length <= most;
            let picked = queue.pick(RAGGED, fits);
            picked.iter().map(|text| text.item).collect::<Vec<_>>()
        };
        assert_eq!(pick(150), [2, 50, 3]);
        assert_eq!(pick(149), [2, 50]);
        assert_eq!(pick(99), [2]);
    }

    #[test]
    fn a_text_past_the_budget_runs_alone() {
        let mut queue = pushed(&[&[500], &[499]]);
        assert_eq!(lengths(&mut queue), [500]);
        assert_eq!(lengths(&mut queue), [499]);
    }

    #[test]
    fn a_text_without_tokens_takes_a_place_all_the_same() {
        let mut queue = pushed(&[&[0]]);
        assert_eq!((queue.texts(), queue.tokens()), (1, 1));
        assert_eq!(lengths(&mut queue), [0]);
    }

    /// The queue's own time for a text, in and out, with ten thousand callers in it.
    #[test]
    #[ignore = "a measurement; `cargo xtask bench scheduler` runs it"]
    fn what_a_text_costs() {
        const CALLERS: u64 = 10_000;
        const TEXTS: u64 = 1_000_000;
        let budget = Budget {
            rows: 32,
            tokens: Tokens::same(256),
            ..BUDGET
        };
        for (a_call, ragged) in [(1, false), (16, false), (1, true), (16, true)] {
            let budget = Budget { ragged, ..budget };
            let mut queue = Queue::default();
            let mut tickets = 0;
            let mut push = |queue: &mut Queue<u64>| {
                let lengths =
                    (0..a_call).map(|text| (3 + (tickets * 7 + text) as usize % 60, text));
                queue.push(tickets, Priority::Normal, lengths);
                tickets += 1;
            };
            (0..CALLERS).for_each(|_| push(&mut queue));
            let started = std::time::Instant::now();
            let (mut picked, mut batches) = (0, 0);
            while picked < TEXTS {
                picked += queue.pick(budget, any).len() as u64;
                batches += 1;
                while (queue.texts() as u64) < CALLERS * a_call {
                    push(&mut queue);
                }
            }
            let each = started.elapsed().as_secs_f64() / picked as f64 * 1e6;
            println!(
                "{a_call} texts a call, {CALLERS} callers, ragged {ragged}: {each:.2} µs a text, {:.1} texts a batch",
                picked as f64 / f64::from(batches)
            );
            assert!(queue.texts() > 0);
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(Priority, Vec<usize>),
        Leave(usize),
        Pick,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (
                proptest::bool::ANY,
                prop::collection::vec(0usize..200, 1..12)
            )
                .prop_map(|(is_low, texts)| Step::Push(
                    if is_low {
                        Priority::Low
                    } else {
                        Priority::Normal
                    },
                    texts
                )),
            (0usize..30).prop_map(Step::Leave),
            Just(Step::Pick),
        ]
    }

    proptest! {
        #[test]
        fn every_text_that_stays_is_picked_once(
            steps in prop::collection::vec(step(), 0..60),
            rows in 1usize..9,
            tokens in 1usize..300,
            least in 1usize..3,
            ragged: bool,
        ) {
            let budget = Budget { rows, tokens: Tokens::same(tokens), least, ragged };
            let mut queue = Queue::default();
            let mut waiting: HashSet<(Ticket, usize)> = HashSet::new();
            let mut tickets = 0;
            let rest = std::iter::repeat_n(Step::Pick, 800);
            for step in steps.into_iter().chain(rest) {
                match step {
                    Step::Push(priority, texts) => {
                        waiting.extend((0..texts.len()).map(|index| (tickets, index)));
                        queue.push(tickets, priority, texts.into_iter().map(|length| (length, length)));
                        tickets += 1;
                    }
                    Step::Leave(ticket) => {
                        waiting.retain(|&(owner, _)| owner != ticket as u64);
                        queue.leave(ticket as u64);
                    }
                    Step::Pick => {
                        let firsts = [&queue.normal, &queue.low].map(|line| line.order.first().copied());
                        let is_low = firsts[0].is_none() || firsts[1].is_some() && queue.passed == BEFORE_LOW;
                        let oldest = firsts[usize::from(is_low)];
                        let picked = queue.pick(budget, any);
                        prop_assert_eq!(picked.is_empty(), waiting.is_empty());
                        prop_assert!(picked.len() <= rows);
                        let computed = budget.computed(picked.iter().map(|text| text.length));
                        prop_assert!(picked.len() <= least || computed <= tokens);
                        for text in &picked {
                            prop_assert!(waiting.remove(&(text.ticket, text.index)));
                        }
                        let served = oldest.is_none_or(|(_, ticket)| {
                            picked.iter().any(|text| text.ticket == ticket)
                        });
                        prop_assert!(served, "the least served caller is served");
                    }
                }
                prop_assert_eq!(queue.texts(), waiting.len());
            }
            prop_assert!(waiting.is_empty());
            prop_assert_eq!(queue.tokens(), 0);
        }
    }
}
