//! A pattern as a tree. The syntax is that of `fancy-regex`
//! (<https://docs.rs/fancy-regex/0.17/fancy_regex/#syntax>).

use crate::error::Fault;
use crate::regex::class::{Set, perl, property};

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq)]
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
    Start,
    End,
    LineStart,
    LineEnd,
    WordEdge,
    NoWordEdge,
}

/// The largest number of repeats.
const MOST_REPEATS: u32 = 1000;
/// How deep groups may lie in each other.
const DEEPEST: usize = 60;

pub(crate) fn parse(pattern: &str) -> Result<Node, Fault> {
    let mut parser = Parser {
        pattern,
        rest: pattern,
        flags: Flags::default(),
        depth: 0,
    };
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.invalid("a parenthesis that closes nothing")),
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_matches_all: bool,
}

struct Parser<'a> {
    pattern: &'a str,
    rest: &'a str,
    flags: Flags,
    depth: usize,
}

impl Parser<'_> {
    fn invalid(&self, what: &str) -> Fault {
        Fault::Invalid(format!("the pattern {:?} has {what}", self.pattern))
    }

    fn unsupported(&self, what: &str) -> Fault {
        Fault::Unsupported(format!("{what} in the pattern {:?}", self.pattern))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Takes `text` off the front, where it stands there.
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn alternatives(&mut self) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.unsupported("groups so deep"));
        }
        let mut all = vec![self.sequence()?];
        while self.take("|") {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(match all.len() {
            1 => all.swap_remove(0),
            _ => Node::Any(all),
        })
    }

    fn sequence(&mut self) -> Result<Node, Fault> {
        let mut all = Vec::new();
        while let Some(next) = self.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            let atom = self.atom()?;
            all.push(self.repeated(atom)?);
        }
        Ok(match all.len() {
            0 => Node::Empty,
            1 => all.swap_remove(0),
            _ => Node::All(all),
        })
    }

    /// An atom with the quantifier that follows it.
    fn repeated(&mut self, node: Node) -> Result<Node, Fault> {
        let (least, most) = match self.peek() {
            Some('?') => (0, 1),
            Some('*') => (0, u32::MAX),
            Some('+') => (1, u32::MAX),
            Some('{') => match self.counts()? {
                Some(counts) => counts,
                // What is no count stands for itself.
                None => return Ok(node),
            },
            _ => return Ok(node),
        };
        if least > most {
            return Err(self.invalid("a repeat whose least is above its most"));
        }
        if matches!(node, Node::Empty | Node::Look { .. }) {
            return Err(self.invalid("a repeat of nothing"));
        }
        self.next();
        let greedy = !self.take("?");
        let repeat = Node::Repeat {
            node: Box::new(node),
            least,
            most,
            greedy,
        };
        Ok(if self.take("+") {
            Node::Atomic(Box::new(repeat))
        } else {
            repeat
        })
    }

    /// `{n}`, `{n,}`, `{,m}` or `{n,m}`, taken up to its brace; `None` where it is none of them.
    fn counts(&mut self) -> Result<Option<(u32, u32)>, Fault> {
        let Some((inside, _)) = self.rest[1..].split_once('}') else {
            return Ok(None);
        };
        let number = |digits: &str, missing: u32| match digits {
            "" => Some(missing),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        };
        let counts = match inside.split_once(',') {
            Some((least, most)) => number(least, 0).zip(number(most, u32::MAX)),
            None if inside.is_empty() => None,
            None => number(inside, 0).map(|count| (count, count)),
        };
        let Some((least, most)) = counts else {
            return Ok(None);
        };
        if least > MOST_REPEATS || (most > MOST_REPEATS && most != u32::MAX) {
            return Err(self.unsupported("so many repeats"));
        }
        self.rest = &self.rest[1 + inside.len()..];
        Ok(Some((least, most)))
    }

    fn atom(&mut self) -> Result<Node, Fault> {
        let Some(next) = self.next() else {
            return Ok(Node::Empty);
        };
        Ok(match next {
            '.' if self.flags.dot_matches_all => Node::One(Set::all()),
            '.' => Node::One(Set::all_but_line_feed()),
            '^' if self.flags.multi_line => Node::Assert(Assert::LineStart),
            '^' => Node::Assert(Assert::Start),
            '$' if self.flags.multi_line => Node::Assert(Assert::LineEnd),
            '$' => Node::Assert(Assert::End),
            '(' => return self.group(),
            '[' => {
                let set = self.class()?;
                Node::One(set)
            }
            '\\' => return self.escape(),
            '?' | '*' | '+' => return Err(self.invalid("a repeat of nothing")),
            literal => Node::One(self.cased(Set::of(literal))?),
        })
    }

    /// A set under the flag that tells whether case matters.
    fn cased(&self, set: Set) -> Result<Set, Fault> {
        if self.flags.ignore_case {
            set.without_case()
        } else {
            Ok(set)
        }
    }

    /// What follows `(`.
    fn group(&mut self) -> Result<Node, Fault> {
        let look = |back: bool, negated: bool| Some((back, negated));
        let mut atomic = false;
        let flags = self.flags;
        let looks = if self.take("?=") {
            look(false, false)
        } else if self.take("?!") {
            look(false, true)
        } else if self.take("?<=") {
            look(true, false)
        } else if self.take("?<!") {
            look(true, true)
        } else if self.take("?>") {
            atomic = true;
            None
        } else if self.take("?P<") || self.take("?<") {
            let name = self.rest.split_once('>');
            let Some((_, rest)) = name else {
                return Err(self.invalid("a group whose name does not end"));
            };
            self.rest = rest;
            None
        } else if self.take("?") {
            self.read_flags()?;
            if self.take(")") {
                // They hold to the end of the group around them, which puts its own back.
                return Ok(Node::Empty);
            }
            if !self.take(":") {
                return Err(self.unsupported("a group of a kind that is not known"));
            }
            None
        } else {
            None
        };
        let node = self.alternatives()?;
        if !self.take(")") {
            return Err(self.invalid("a group that does not end"));
        }
        self.flags = flags;
        let node = Box::new(node);
        Ok(match looks {
            Some((back, negated)) => Node::Look {
                node,
                back,
                negated,
            },
            None if atomic => Node::Atomic(node),
            // A group around nothing can be repeated, nothing itself cannot.
            None if matches!(*node, Node::Empty | Node::Look { .. }) => Node::All(vec![*node]),
            None => *node,
        })
    }

    /// `i`, `m`, `s` and `u`, and what follows `-`, which is off.
    fn read_flags(&mut self) -> Result<(), Fault> {
        let mut on = true;
        loop {
            match self.peek() {
                Some('i') => self.flags.ignore_case = on,
                Some('m') => self.flags.multi_line = on,
                Some('s') => self.flags.dot_matches_all = on,
                Some('u') if on => {}
                Some('-') if on => on = false,
                Some(':' | ')') => return Ok(()),
                _ => return Err(self.unsupported("a group or a flag that is not known")),
            }
            self.next();
        }
    }

    /// What follows `\` outside a class.
    fn escape(&mut self) -> Result<Node, Fault> {
        let assert = match self.peek() {
            Some('A') => Some(Assert::Start),
            Some('z') => Some(Assert::End),
            Some('b') => Some(Assert::WordEdge),
            Some('B') => Some(Assert::NoWordEdge),
            Some('<' | '>') => return Err(self.unsupported("a half of a word's edge")),
            _ => None,
        };
        if let Some(assert) = assert {
            self.next();
            if self.peek() == Some('{') {
                return Err(self.unsupported("a word's edge of a special kind"));
            }
            return Ok(Node::Assert(assert));
        }
        match self.set()? {
            Escaped::Closed(set) => Ok(Node::One(set)),
            Escaped::Set(set) => Ok(Node::One(self.cased(set)?)),
            Escaped::Character(literal) => Ok(Node::One(self.cased(Set::of(literal))?)),
        }
    }

    /// What follows `\`, in a class or outside.
    fn set(&mut self) -> Result<Escaped, Fault> {
        let Some(letter) = self.next() else {
            return Err(self.invalid("a backslash at its end"));
        };
        let literal = match letter {
            'a' => '\x07',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'e' => '\x1b',
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            'U' => self.hexadecimal(8)?,
            'p' | 'P' => return self.named(letter == 'P').map(Escaped::Set),
            'h' | 'H' => {
                let ranges = vec![(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)];
                let set = Set::new(ranges);
                let set = if letter == 'H' { set.negated() } else { set };
                return Ok(Escaped::Closed(set));
            }
            _ => {
                if let Some(set) = perl(letter.to_ascii_lowercase()) {
                    let negated = letter.is_ascii_uppercase();
                    return Ok(Escaped::Closed(if negated { set.negated() } else { set }));
                }
                if letter.is_ascii_alphanumeric() {
                    return Err(self.unsupported(&format!("the escape \\{letter}")));
                }
                letter
            }
        };
        Ok(Escaped::Character(literal))
    }

    /// A code point in so many digits, or in braces.
    fn hexadecimal(&mut self, digits: usize) -> Result<char, Fault> {
        let written = if self.take("{") {
            let inside = self.rest.split_once('}');
            let Some((inside, rest)) = inside else {
                return Err(self.invalid("a brace that does not close"));
            };
            self.rest = rest;
            inside
        } else {
            let Some((written, rest)) = self.rest.split_at_checked(digits) else {
                return Err(self.invalid("a code point that is cut short"));
            };
            self.rest = rest;
            written
        };
        let code = u32::from_str_radix(written, 16).ok();
        code.and_then(char::from_u32)
            .ok_or_else(|| self.invalid("a code point that is none"))
    }

    /// What follows `\p` or `\P`.
    fn named(&mut self, negated: bool) -> Result<Set, Fault> {
        let name = if self.take("{") {
            let inside = self.rest.split_once('}');
            let Some((inside, rest)) = inside else {
                return Err(self.invalid("a brace that does not close"));
            };
            self.rest = rest;
            inside
        } else {
            let length = self.peek().map_or(0, char::len_utf8);
            let (name, rest) = self.rest.split_at(length);
            self.rest = rest;
            name
        };
        let (name, inside) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let set = property(name)?;
        Ok(if negated != inside {
            set.negated()
        } else {
            set
        })
    }

    /// What follows `[`.
    fn class(&mut self) -> Result<Set, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.unsupported("classes so deep"));
        }
        let negated = self.take("^");
        let mut all: Option<(Set, Operator)> = None;
        let mut set = Set::default();
        let mut first = true;
        loop {
            if !first && self.take("]") {
                break;
            }
            let operator = match self.rest.get(..2) {
                Some("&&") => Some(Operator::Intersection),
                Some("--") if !first => Some(Operator::Difference),
                Some("~~") => return Err(self.unsupported("a symmetric difference")),
                _ => None,
            };
            if let Some(operator) = operator {
                self.rest = &self.rest[2..];
                set = joined(all.take(), set);
                all = Some((std::mem::take(&mut set), operator));
                first = false;
                continue;
            }
            set = set.union(&self.member(first)?);
            first = false;
        }
        self.depth -= 1;
        let set = joined(all, set);
        Ok(if negated { set.negated() } else { set })
    }

    /// A member of a class: a character, a range, a set or a class.
    fn member(&mut self, first: bool) -> Result<Set, Fault> {
        let from = match self.next() {
            None => return Err(self.invalid("a class that does not end")),
            Some('[') if self.peek() == Some(':') => {
                return Err(self.unsupported("a POSIX class"));
            }
            Some('[') => return self.class(),
            Some('\\') => match self.set_in_class()? {
                Escaped::Character(literal) => literal,
                Escaped::Set(_) | Escaped::Closed(_) if self.starts_range() => {
                    return Err(self.invalid("a range that starts with a set"));
                }
                Escaped::Closed(set) => return Ok(set),
                Escaped::Set(set) => return self.cased(set),
            },
            Some(literal) => literal,
        };
        if !self.starts_range() || (first && from == '-') {
            return self.cased(Set::of(from));
        }
        self.next();
        let to = match self.next() {
            Some('\\') => match self.set_in_class()? {
                Escaped::Character(literal) => literal,
                Escaped::Set(_) | Escaped::Closed(_) => {
                    return Err(self.invalid("a range that ends in a set"));
                }
            },
            Some('[') | None => return Err(self.invalid("a range without an end")),
            Some(literal) => literal,
        };
        if from > to {
            return Err(self.invalid("a range whose end comes before its start"));
        }
        self.cased(Set::range(from, to))
    }

    /// Whether a hyphen follows that is no member itself.
    fn starts_range(&self) -> bool {
        self.rest.starts_with('-') && !self.rest.starts_with("--") && !self.rest.starts_with("-]")
    }

    fn set_in_class(&mut self) -> Result<Escaped, Fault> {
        if self.take("b") {
            return Ok(Escaped::Character('\x08'));
        }
        self.set()
    }
}

/// What an escape stands for.
enum Escaped {
    Character(char),
    /// A set that holds, of every letter, both cases or neither.
    Closed(Set),
    Set(Set),
}

#[derive(Clone, Copy)]
enum Operator {
    Intersection,
    Difference,
}

fn joined(left: Option<(Set, Operator)>, right: Set) -> Set {
    match left {
        None => right,
        Some((left, Operator::Intersection)) => left.intersection(&right),
        Some((left, Operator::Difference)) => left.difference(&right),
    }
}
