//! A pattern as a tree.

use crate::regex::class::Set;

/// A part of a pattern.
#[derive(Debug)]
pub(crate) enum Node {
    /// Nothing, which always matches.
    Empty,
    /// One character.
    One(Set),
    /// One after the other.
    All(Vec<Node>),
    /// The first that matches.
    Any(Vec<Node>),
    /// The same several times; `most` may be [`u32::MAX`] for no end.
    Repeat {
        node: Box<Node>,
        least: u32,
        most: u32,
        greedy: bool,
    },
    /// Parentheses that are more than the order of reading: they capture, or set flags.
    Group { node: Box<Node>, captures: bool },
    /// Once matched, never tried again.
    Atomic(Box<Node>),
    /// Looks ahead, or back, without taking anything.
    Look {
        node: Box<Node>,
        back: bool,
        negated: bool,
    },
    /// A place.
    Assert(Assert),
}

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assert {
    /// `\A`
    Start,
    /// `\z`
    End,
    /// `\Z`: the end, or before a line feed that is the last character.
    LastLine,
    /// `^`: the start, or after a line feed that is not the last character.
    LineStart,
    /// `$`: the end, or before any line feed.
    LineEnd,
    /// `\b`
    WordEdge,
    /// `\B`
    NoWordEdge,
}

/// What the start of a pattern holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Head {
    Nothing,
    /// `^` or `\A`.
    LineStart,
    /// Another place.
    Place,
    Characters,
}

impl Node {
    /// The parts, one after the other.
    pub(crate) fn all(mut all: Vec<Self>) -> Self {
        match all.len() {
            0 => Self::Empty,
            1 => all.swap_remove(0),
            _ => Self::All(all),
        }
    }

    /// The same several times. Endless repeats of endless repeats are one, as in Oniguruma: the
    /// places at which they end are the same, and in the same order.
    pub(crate) fn repeated(self, least: u32, most: u32, greedy: bool) -> Self {
        let once_or_endless = least <= 1 && matches!(most, 1 | u32::MAX);
        match self {
            Self::Repeat {
                node,
                least: inner @ (0 | 1),
                most: u32::MAX,
                greedy: true,
            } if greedy && once_or_endless && matches!(*node, Self::One(_)) => Self::Repeat {
                node,
                least: inner * least,
                most: u32::MAX,
                greedy,
            },
            node => Self::Repeat {
                node: Box::new(node),
                least,
                most,
                greedy,
            },
        }
    }

    /// Whether it can match without taking a character.
    pub(crate) fn may_be_empty(&self) -> bool {
        match self {
            Self::Empty | Self::Look { .. } | Self::Assert(_) => true,
            Self::One(_) => false,
            Self::All(all) => all.iter().all(Self::may_be_empty),
            Self::Any(all) => all.iter().any(Self::may_be_empty),
            Self::Repeat { node, least, .. } => *least == 0 || node.may_be_empty(),
            Self::Group { node, .. } | Self::Atomic(node) => node.may_be_empty(),
        }
    }

    /// Whether Oniguruma takes the pattern for one that starts with an endless dot though a place
    /// comes first: it then passes over starts at which only the place stands in the way.
    pub(crate) fn hides_a_place(&self) -> bool {
        self.head(Head::Nothing).is_none()
    }

    /// What the pattern's start holds after this, `None` where an endless dot follows a place.
    fn head(&self, head: Head) -> Option<Head> {
        if head == Head::Characters {
            return Some(head);
        }
        match self {
            Self::Empty => Some(head),
            Self::One(_) => Some(Head::Characters),
            Self::Assert(Assert::Start | Assert::LineStart) => Some(head.max(Head::LineStart)),
            Self::Assert(_) | Self::Look { .. } => Some(Head::Place),
            Self::All(all) => all.iter().try_fold(head, |head, node| node.head(head)),
            Self::Any(all) => all.iter().try_fold(head, |most, node| {
                let one = node.head(head)?;
                Some(one.max(most))
            }),
            Self::Repeat { most: 0, .. } => Some(head),
            Self::Repeat {
                node, most, greedy, ..
            } => match node.at_most_one() {
                Some(set) if *most == u32::MAX && *greedy => match head {
                    Head::LineStart if *set == Set::all() => None,
                    Head::Place if set.is_dot() => None,
                    _ => Some(Head::Characters),
                },
                _ => node.head(head),
            },
            Self::Group { node, .. } | Self::Atomic(node) => node.head(head),
        }
    }

    /// The set of which an endless repeat of this takes characters: Oniguruma makes one endless
    /// repeat of `(?:.?)*` and its like.
    fn at_most_one(&self) -> Option<&Set> {
        match self {
            Self::One(set) => Some(set),
            Self::Repeat {
                node,
                least: 0 | 1,
                most: 1 | u32::MAX,
                greedy: true,
            }
            | Self::Group { node, .. } => node.at_most_one(),
            _ => None,
        }
    }

    /// Whether Oniguruma refuses to repeat it.
    pub(crate) fn is_place(&self) -> bool {
        match self {
            Self::Assert(_) | Self::Look { .. } => true,
            Self::Any(all) => all.iter().any(Self::is_place),
            _ => false,
        }
    }

    /// How far back a look for it goes, where that is known.
    pub(crate) fn back(&self) -> Option<u32> {
        /// The farthest.
        const FARTHEST: u32 = 1000;
        self.width().filter(|width| (1..=FARTHEST).contains(width))
    }

    /// How many characters it takes, where that is always the same and it holds nothing but
    /// characters. Else `None`.
    fn width(&self) -> Option<u32> {
        match self {
            Self::Empty => Some(0),
            Self::One(_) => Some(1),
            Self::All(all) => all
                .iter()
                .try_fold(0_u32, |sum, node| sum.checked_add(node.width()?)),
            Self::Any(all) => {
                let mut widths = all.iter().map(Self::width);
                let first = widths.next()??;
                widths.all(|width| width == Some(first)).then_some(first)
            }
            Self::Repeat {
                node, least, most, ..
            } if least == most => node.width()?.checked_mul(*least),
            Self::Group {
                node,
                captures: false,
            } => node.width(),
            Self::Group { .. }
            | Self::Repeat { .. }
            | Self::Atomic(_)
            | Self::Look { .. }
            | Self::Assert(_) => None,
        }
    }
}
