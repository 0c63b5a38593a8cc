//! A tree as a program.

use crate::error::Fault;
use crate::regex::Regex;
use crate::regex::class::Set;
use crate::regex::parse::{Assert, Node};

/// A step of a program. Places in the program are indices of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Takes one character of the class.
    One(u32),
    /// Takes characters of the class, from `least` to `most`.
    Many {
        class: u32,
        least: u32,
        most: u32,
        how: How,
    },
    /// Goes on at the first place and, if that fails, at the second.
    Split(usize, usize),
    Jump(usize),
    /// Notes where in the text a round of a loop starts.
    Mark(usize),
    /// Leaves the loop, to the place, where the round has taken nothing.
    Leave(usize, usize),
    /// Runs the steps up to `end`, so many characters back, without taking anything.
    Look {
        end: usize,
        back: Option<u32>,
        negated: bool,
    },
    /// Runs the steps up to `end`, and forgets the ways that they left open.
    Atomic {
        end: usize,
    },
    Assert(Assert),
    /// The end of the program, or of the steps of a look or an atomic group.
    Accept,
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

pub(crate) fn compile(tree: &Node) -> Result<Regex, Fault> {
    let mut compiler = Compiler {
        ops: Vec::new(),
        sets: Vec::new(),
        marks: 0,
    };
    compiler.node(tree)?;
    compiler.push(Op::Accept)?;
    Ok(Regex {
        ops: compiler.ops,
        classes: compiler.sets.iter().map(|set| set.class()).collect(),
        marks: compiler.marks,
    })
}

struct Compiler<'a> {
    ops: Vec<Op>,
    sets: Vec<&'a Set>,
    marks: usize,
}

impl<'a> Compiler<'a> {
    fn push(&mut self, op: Op) -> Result<usize, Fault> {
        if self.ops.len() >= LONGEST {
            return Err(Fault::Unsupported("a pattern so large".to_owned()));
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    fn class(&mut self, set: &'a Set) -> u32 {
        let known = self.sets.iter().position(|&known| known == set);
        let index = known.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        index as u32
    }

    fn node(&mut self, node: &'a Node) -> Result<(), Fault> {
        match node {
            Node::Empty => {}
            Node::One(set) => {
                let class = self.class(set);
                self.push(Op::One(class))?;
            }
            Node::All(all) => all.iter().try_for_each(|node| self.node(node))?,
            Node::Any(all) => self.any(all)?,
            Node::Repeat {
                node,
                least,
                most,
                greedy,
            } => self.repeat(node, *least, *most, *greedy)?,
            Node::Atomic(node) => self.atomic(node)?,
            Node::Look {
                node,
                back,
                negated,
            } => self.look(node, *back, *negated)?,
            Node::Assert(assert) => {
                self.push(Op::Assert(*assert))?;
            }
        }
        Ok(())
    }

    fn any(&mut self, all: &'a [Node]) -> Result<(), Fault> {
        let mut ends = Vec::new();
        for (index, node) in all.iter().enumerate() {
            if index + 1 == all.len() {
                self.node(node)?;
                continue;
            }
            let split = self.push(Op::Split(0, 0))?;
            self.node(node)?;
            ends.push(self.push(Op::Jump(0))?);
            self.ops[split] = Op::Split(split + 1, self.ops.len());
        }
        for end in ends {
            self.ops[end] = Op::Jump(self.ops.len());
        }
        Ok(())
    }

    fn repeat(&mut self, node: &'a Node, least: u32, most: u32, greedy: bool) -> Result<(), Fault> {
        if let Node::One(set) = node {
            let how = if greedy { How::Greedy } else { How::Lazy };
            return self.many(set, least, most, how);
        }
        for _ in 0..least {
            self.node(node)?;
        }
        let split = |inside: usize, after: usize| {
            if greedy {
                Op::Split(inside, after)
            } else {
                Op::Split(after, inside)
            }
        };
        if most == u32::MAX {
            let mark = self.marks;
            self.marks += 1;
            let start = self.push(Op::Split(0, 0))?;
            self.push(Op::Mark(mark))?;
            self.node(node)?;
            let leave = self.push(Op::Leave(mark, 0))?;
            self.push(Op::Jump(start))?;
            let after = self.ops.len();
            self.ops[start] = split(start + 1, after);
            self.ops[leave] = Op::Leave(mark, after);
            return Ok(());
        }
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(Op::Split(0, 0))?);
            self.node(node)?;
        }
        let after = self.ops.len();
        for at in splits {
            self.ops[at] = split(at + 1, after);
        }
        Ok(())
    }

    fn many(&mut self, set: &'a Set, least: u32, most: u32, how: How) -> Result<(), Fault> {
        let class = self.class(set);
        self.push(Op::Many {
            class,
            least,
            most,
            how,
        })?;
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
        self.ops[start] = Op::Atomic {
            end: self.ops.len(),
        };
        Ok(())
    }

    fn look(&mut self, node: &'a Node, back: bool, negated: bool) -> Result<(), Fault> {
        let back = if back {
            let width = width(node).ok_or_else(|| {
                Fault::Unsupported("a pattern that looks back over no fixed length".to_owned())
            })?;
            Some(width)
        } else {
            None
        };
        let start = self.push(Op::Accept)?;
        self.node(node)?;
        self.push(Op::Accept)?;
        self.ops[start] = Op::Look {
            end: self.ops.len(),
            back,
            negated,
        };
        Ok(())
    }
}

/// How many characters a part takes, where that is always the same.
fn width(node: &Node) -> Option<u32> {
    match node {
        Node::Empty | Node::Look { .. } | Node::Assert(_) => Some(0),
        Node::One(_) => Some(1),
        Node::All(all) => all.iter().map(width).sum(),
        Node::Any(all) => {
            let mut widths = all.iter().map(width);
            let first = widths.next()??;
            widths.all(|width| width == Some(first)).then_some(first)
        }
        Node::Repeat {
            node, least, most, ..
        } if least == most => width(node)?.checked_mul(*least),
        Node::Repeat { .. } => None,
        Node::Atomic(node) => width(node),
    }
}
