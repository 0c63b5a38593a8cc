//! A tree as a program.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::Fault;
use crate::regex::Regex;
use crate::regex::class::Set;
use crate::regex::node::{Assert, Node};

/// A step of a program. Places in the program are indices of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Takes one character of the class.
    One(u32),
    /// Takes characters of one class.
    Many(Many),
    /// Goes on at the first place and, if that fails, at the second.
    Split(Split),
    Jump(u32),
    /// Notes where in the text a round of a loop starts.
    Mark(u32),
    /// Leaves the loop, to the place, where the round has taken nothing.
    Leave(u32, u32),
    /// Runs the steps up to `end`, so many characters back, without taking anything.
    Look {
        end: u32,
        back: u32,
        negated: bool,
    },
    /// Runs the steps up to `end`, and forgets the ways that they left open.
    Atomic {
        end: u32,
    },
    Assert(Assert),
    /// The end of the program, or of the steps of a look or an atomic group.
    Accept,
}

/// Two ways to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Split {
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// Its number among those of which a search may note where the first way fails; `u32::MAX`
    /// where that depends on more than the place.
    pub(crate) note: u32,
}

/// A repeat of one class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Many {
    pub(crate) class: u32,
    pub(crate) least: u32,
    pub(crate) most: u32,
    pub(crate) how: How,
    /// Where a search notes what it knows of this repeat.
    pub(crate) notes: u32,
    /// Whether what follows depends on the place alone, and on nothing that came before.
    pub(crate) is_plain: bool,
}

/// How many a repeat takes first, and whether it gives some back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Greedy,
    Lazy,
    Possessive,
}

/// The longest program. Counted repeats of groups are written out.
const LONGEST: usize = 20_000;
/// How many nodes of the tree are looked at, those of a repeat once for every time that it is
/// written out: what is empty adds nothing to a program and costs time all the same.
const MOST_VISITS: usize = 4 * LONGEST;

pub(crate) fn compile(tree: &Node) -> Result<Regex, Fault> {
    let mut compiler = Compiler {
        ops: Vec::new(),
        sets: HashMap::new(),
        marks: 0,
        notes: 0,
        splits: 0,
        rounds: 0,
        visits: 0,
    };
    compiler.node(tree)?;
    compiler.push(Op::Accept)?;
    let mut sets: Vec<(&Set, u32)> = compiler.sets.into_iter().collect();
    sets.sort_unstable_by_key(|&(_, index)| index);
    Ok(Regex {
        ops: compiler.ops,
        classes: sets.iter().map(|(set, _)| set.class()).collect(),
        marks: compiler.marks as usize,
        notes: compiler.notes as usize,
        splits: compiler.splits as usize,
        #[cfg(test)]
        visits: compiler.visits,
    })
}

struct Compiler<'a> {
    ops: Vec<Op>,
    sets: HashMap<&'a Set, u32>,
    marks: u32,
    notes: u32,
    splits: u32,
    /// How many loops around are left where a round takes nothing.
    rounds: usize,
    visits: usize,
}

fn too_large() -> Fault {
    Fault::Unsupported("a pattern so large".to_owned())
}

impl<'a> Compiler<'a> {
    fn push(&mut self, op: Op) -> Result<usize, Fault> {
        if self.ops.len() >= LONGEST {
            return Err(too_large());
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    /// The place of the next step.
    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Pushes a split, whose ways [`Compiler::leads`] tells later.
    fn split(&mut self) -> Result<usize, Fault> {
        let note = match self.rounds {
            0 => self.splits,
            _ => u32::MAX,
        };
        self.splits += u32::from(self.rounds == 0);
        let (first, second) = (0, 0);
        self.push(Op::Split(Split {
            first,
            second,
            note,
        }))
    }

    fn leads(&mut self, at: usize, ways: (u32, u32)) {
        if let Some(Op::Split(split)) = self.ops.get_mut(at) {
            (split.first, split.second) = ways;
        }
    }

    fn class(&mut self, set: &'a Set) -> u32 {
        let next = self.sets.len() as u32;
        match self.sets.entry(set) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(next),
        }
    }

    fn node(&mut self, node: &'a Node) -> Result<(), Fault> {
        self.visits += 1;
        if self.visits > MOST_VISITS {
            return Err(too_large());
        }
        match node {
            Node::Empty => {}
            Node::One(set) => {
                let class = self.class(set);
                self.push(Op::One(class))?;
            }
            Node::All(all) => all.iter().try_for_each(|node| self.node(node))?,
            Node::Any(all) => self.any(all, Self::node)?,
            Node::Repeat {
                node,
                least,
                most,
                greedy,
            } => self.repeat(node, *least, *most, *greedy)?,
            Node::Group { node, .. } => self.node(node)?,
            Node::Atomic(node) => self.atomic(node)?,
            Node::Look {
                node,
                back: false,
                negated,
            } => self.look(node, 0, *negated)?,
            Node::Look { node, negated, .. } => self.look_back(node, *negated)?,
            Node::Assert(assert) => {
                self.push(Op::Assert(*assert))?;
            }
        }
        Ok(())
    }

    /// The first of `all` that matches, each compiled by `each`.
    fn any(
        &mut self,
        all: &'a [Node],
        each: impl Fn(&mut Self, &'a Node) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Some((last, others)) = all.split_last() else {
            return Ok(());
        };
        let mut ends = Vec::new();
        for node in others {
            let split = self.split()?;
            each(self, node)?;
            ends.push(self.push(Op::Jump(0))?);
            self.leads(split, (split as u32 + 1, self.here()));
        }
        each(self, last)?;
        for end in ends {
            self.ops[end] = Op::Jump(self.here());
        }
        Ok(())
    }

    fn repeat(&mut self, node: &'a Node, least: u32, most: u32, greedy: bool) -> Result<(), Fault> {
        if let Node::One(set) = node {
            let how = if greedy { How::Greedy } else { How::Lazy };
            return self.many(set, least, most, how);
        }
        for _ in 0..least {
            let before = self.ops.len();
            self.node(node)?;
            // What is nothing once is nothing however often.
            if self.ops.len() == before {
                return Ok(());
            }
        }
        let ways = |inside: u32, after: u32| match greedy {
            true => (inside, after),
            false => (after, inside),
        };
        if most == u32::MAX {
            return self.endless(node, ways);
        }
        let mut splits = Vec::new();
        for _ in least..most {
            let at = self.split()?;
            self.node(node)?;
            if self.ops.len() == at + 1 {
                self.ops.pop();
                break;
            }
            splits.push(at);
        }
        let after = self.here();
        for at in splits {
            self.leads(at, ways(at as u32 + 1, after));
        }
        Ok(())
    }

    /// A repeat without an end, written once. Where a round can take nothing, one that does is
    /// the last.
    fn endless(
        &mut self,
        node: &'a Node,
        ways: impl Fn(u32, u32) -> (u32, u32),
    ) -> Result<(), Fault> {
        let start = self.split()?;
        let back = Op::Jump(start as u32);
        if node.may_be_empty() {
            let mark = self.marks;
            self.marks += 1;
            self.push(Op::Mark(mark))?;
            self.rounds += 1;
            self.node(node)?;
            self.rounds -= 1;
            let leave = self.push(Op::Leave(mark, 0))?;
            self.push(back)?;
            self.ops[leave] = Op::Leave(mark, self.here());
        } else {
            self.node(node)?;
            self.push(back)?;
        }
        self.leads(start, ways(start as u32 + 1, self.here()));
        Ok(())
    }

    fn many(&mut self, set: &'a Set, least: u32, most: u32, how: How) -> Result<(), Fault> {
        if most == 0 {
            return Ok(());
        }
        let class = self.class(set);
        self.push(Op::Many(Many {
            class,
            least,
            most,
            how,
            notes: self.notes,
            is_plain: self.rounds == 0,
        }))?;
        self.notes += 1;
        Ok(())
    }

    fn atomic(&mut self, node: &'a Node) -> Result<(), Fault> {
        if let Node::Repeat {
            node,
            least,
            most,
            greedy: true,
        } = node
            && let Node::One(set) = &**node
        {
            return self.many(set, *least, *most, How::Possessive);
        }
        let start = self.push(Op::Atomic { end: 0 })?;
        self.node(node)?;
        self.push(Op::Accept)?;
        self.ops[start] = Op::Atomic { end: self.here() };
        Ok(())
    }

    fn look(&mut self, node: &'a Node, back: u32, negated: bool) -> Result<(), Fault> {
        let start = self.push(Op::Accept)?;
        self.node(node)?;
        self.push(Op::Accept)?;
        self.ops[start] = Op::Look {
            end: self.here(),
            back,
            negated,
        };
        Ok(())
    }

    /// A look back, each of whose alternatives takes as many characters as it always does.
    fn look_back(&mut self, node: &'a Node, negated: bool) -> Result<(), Fault> {
        let all = match node {
            Node::Any(all) => all.as_slice(),
            node => std::slice::from_ref(node),
        };
        let back = |node: &Node| node.back().ok_or_else(too_large);
        if negated {
            let mut all = all.iter();
            return all.try_for_each(|node| self.look(node, back(node)?, true));
        }
        self.any(all, |compiler, node| {
            compiler.look(node, back(node)?, false)
        })
    }
}
