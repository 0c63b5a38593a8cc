//! A pattern to a tree, in the syntax that Oniguruma 6.9 calls its own, as its `regparse.c` reads
//! it (`prs_alts`, `prs_branch`, `prs_exp`, `prs_bag`, `fetch_interval`).

use crate::error::Fault;
use crate::regex::class::Set;
use crate::regex::fold;
use crate::regex::node::{Assert, Node};

/// The largest number of repeats, as in Oniguruma.
const MOST_REPEATS: u32 = 100_000;
/// How deep groups, classes and repeats may lie in each other.
const DEEPEST: usize = 60;
/// How many ranges of characters a pattern may ask for while it is read, in all its classes.
const MOST_RANGES: usize = 1 << 21;

pub(crate) fn parse(pattern: &str) -> Result<Node, Fault> {
    let mut parser = Parser::new(pattern);
    let node = parser.alternatives()?;
    match parser.peek() {
        None if node.hides_a_place() => {
            Err(parser.unsupported("an endless dot after a place, and nothing before,"))
        }
        None => Ok(node),
        Some(_) => Err(parser.invalid("a parenthesis that closes nothing")),
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) ignore_case: bool,
    dot_matches_all: bool,
}

pub(super) struct Parser<'a> {
    pattern: &'a str,
    pub(super) rest: &'a str,
    pub(super) flags: Flags,
    depth: usize,
    ranges: usize,
    /// The literal read last, where case was ignored.
    before: Option<char>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(pattern: &'a str) -> Self {
        Self {
            pattern,
            rest: pattern,
            flags: Flags::default(),
            depth: 0,
            ranges: 0,
            before: None,
        }
    }

    pub(super) fn invalid(&self, what: &str) -> Fault {
        Fault::Invalid(format!("the pattern {:?} has {what}", shown(self.pattern)))
    }

    pub(super) fn unsupported(&self, what: &str) -> Fault {
        Fault::Unsupported(format!("{what} in the pattern {:?}", shown(self.pattern)))
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Takes `text` off the front, where it stands there.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes what stands before `end`, and `end`.
    pub(super) fn take_up_to(&mut self, end: char) -> Option<&'a str> {
        let (inside, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(inside)
    }

    /// Goes one deeper; [`Parser::leave`] comes back.
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(self.unsupported("groups so deep")),
            false => Ok(()),
        }
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts the ranges of a set that was asked for, so that a short pattern cannot make many
    /// large ones.
    pub(super) fn count(&mut self, set: Set) -> Result<Set, Fault> {
        self.ranges += set.len();
        match self.ranges > MOST_RANGES {
            true => Err(self.unsupported("so many characters")),
            false => Ok(set),
        }
    }

    fn alternatives(&mut self) -> Result<Node, Fault> {
        self.enter()?;
        let flags = self.flags;
        let mut all = vec![self.sequence()?];
        while self.take("|") {
            self.before = None;
            all.push(self.sequence()?);
        }
        self.flags = flags;
        self.leave();
        Ok(match all.len() {
            1 => all.swap_remove(0),
            _ => Node::Any(all),
        })
    }

    fn sequence(&mut self) -> Result<Node, Fault> {
        let mut all = Vec::new();
        loop {
            self.skip_comments()?;
            match self.peek() {
                None | Some('|' | ')') => break,
                Some('(') => match self.group()? {
                    Part::Whole(node) => all.push(self.repeated(node)?),
                    // Flags hold up to the end of the group around them, alternatives included.
                    Part::Rest(node) => {
                        all.push(node);
                        break;
                    }
                },
                Some(_) => {
                    let atom = self.atom()?;
                    all.push(self.repeated(atom)?);
                }
            }
        }
        Ok(Node::all(all))
    }

    /// Passes over `(?#...)`, which may stand anywhere outside a class.
    fn skip_comments(&mut self) -> Result<(), Fault> {
        while self.take("(?#") {
            loop {
                match self.next() {
                    Some(')') => break,
                    Some('\\') => {
                        self.next();
                    }
                    Some(_) => {}
                    None => return Err(self.invalid("a comment that does not end")),
                }
            }
        }
        Ok(())
    }

    /// An atom with the quantifiers that follow it.
    fn repeated(&mut self, mut node: Node) -> Result<Node, Fault> {
        let mut depth = 0;
        let mut once = false;
        loop {
            self.skip_comments()?;
            let Some(count) = self.quantifier()? else {
                return Ok(node);
            };
            if node.is_place() {
                return Err(self.invalid("a repeat of a place"));
            }
            // Oniguruma forgets what `{1}` stood after, and repeats the last character of it.
            if once {
                return Err(self.unsupported("a repeat of {1}"));
            }
            // Oniguruma may leave such a repeat before it has gone as often as it should.
            let bounded = count.least > 1 || (count.most > 1 && count.most < u32::MAX);
            if bounded && node.may_be_empty() {
                return Err(self.unsupported("a counted repeat of an expression that may be empty"));
            }
            depth += 1;
            if depth > DEEPEST {
                return Err(self.unsupported("repeats so deep"));
            }
            once = (count.least, count.most) == (1, 1);
            if !once {
                node = node.repeated(count.least, count.most, count.how != How::Lazy);
            }
            if count.how == How::Possessive {
                node = Node::Atomic(Box::new(node));
            }
        }
    }

    /// Takes a quantifier; `None` where none stands.
    fn quantifier(&mut self) -> Result<Option<Count>, Fault> {
        let (least, most) = match self.peek() {
            Some('?') => (0, 1),
            Some('*') => (0, u32::MAX),
            Some('+') => (1, u32::MAX),
            Some('{') => return self.interval(),
            _ => return Ok(None),
        };
        self.next();
        let how = if self.take("?") {
            How::Lazy
        } else if self.take("+") {
            How::Possessive
        } else {
            How::Greedy
        };
        Ok(Some(Count { least, most, how }))
    }

    /// `{n}`, `{n,}`, `{,m}` or `{n,m}`; what is none of them stands for itself. `{n}?` is not
    /// lazy and `{n,m}+` is not possessive: they are repeats of repeats. With the larger number
    /// first it is possessive.
    fn interval(&mut self) -> Result<Option<Count>, Fault> {
        let start = self.rest;
        self.take("{");
        let least = self.number()?;
        let comma = self.take(",");
        let most = if comma { self.number()? } else { None };
        let (least, most) = match (least, comma, most) {
            (Some(count), false, _) => (count, count),
            (Some(least), true, most) => (least, most.unwrap_or(u32::MAX)),
            (None, true, Some(most)) => (0, most),
            (None, ..) => {
                self.rest = start;
                return Ok(None);
            }
        };
        if !self.take("}") {
            self.rest = start;
            return Ok(None);
        }
        let how = if least > most {
            How::Possessive
        } else if comma && self.take("?") {
            How::Lazy
        } else {
            How::Greedy
        };
        Ok(Some(Count {
            least: least.min(most),
            most: least.max(most),
            how,
        }))
    }

    /// Takes a number of repeats.
    fn number(&mut self) -> Result<Option<u32>, Fault> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (written, rest) = self.rest.split_at(digits);
        self.rest = rest;
        // Oniguruma takes the digits of any script.
        if self.peek().is_some_and(|c| !c.is_ascii() && c.is_numeric()) {
            return Err(self.unsupported("a count in other digits than 0 to 9"));
        }
        if written.is_empty() {
            return Ok(None);
        }
        match written.parse() {
            Ok(number) if number <= MOST_REPEATS => Ok(Some(number)),
            _ => Err(self.invalid("a number of repeats above 100,000")),
        }
    }

    fn atom(&mut self) -> Result<Node, Fault> {
        let before = self.before.take();
        Ok(match self.peek() {
            None => Node::Empty,
            Some('?' | '*' | '+') => return Err(self.invalid("a repeat of nothing")),
            Some('{') => {
                if self.interval()?.is_some() {
                    return Err(self.invalid("a repeat of nothing"));
                }
                self.next();
                self.literal('{', before)?
            }
            Some('\\') => {
                self.next();
                return self.escape(before);
            }
            Some('[') => {
                self.next();
                Node::One(self.class()?)
            }
            Some(next) => {
                self.next();
                match next {
                    '.' if self.flags.dot_matches_all => Node::One(Set::all()),
                    '.' => Node::One(Set::all_but_line_feed()),
                    '^' => Node::Assert(Assert::LineStart),
                    '$' => Node::Assert(Assert::LineEnd),
                    literal => self.literal(literal, before)?,
                }
            }
        })
    }

    /// A character that stands for itself, after another.
    pub(super) fn literal(&mut self, literal: char, before: Option<char>) -> Result<Node, Fault> {
        let set = Set::of(literal);
        if !self.flags.ignore_case {
            return Ok(Node::One(set));
        }
        let after = fold::lower(literal);
        // Oniguruma takes such a pair for one character as well: `(?i)ss` matches an eszett.
        if before.is_some_and(|before| fold::may_be_one(before, after)) {
            return Err(self.unsupported(&format!(
                "{:?}, which is one letter to a pattern that ignores case,",
                format!("{}{literal}", before.unwrap_or_default())
            )));
        }
        self.before = Some(after);
        fold::without_case(&set).map(Node::One)
    }

    /// What starts with a parenthesis.
    fn group(&mut self) -> Result<Part, Fault> {
        self.take("(");
        if self.peek() == Some('*') {
            return Err(self.unsupported("a callout"));
        }
        let looks = |back: bool, negated: bool| {
            move |node| Node::Look {
                node,
                back,
                negated,
            }
        };
        let captures = |node| Node::Group {
            node,
            captures: true,
        };
        Ok(Part::Whole(if self.take("?=") {
            self.inside(looks(false, false))?
        } else if self.take("?!") {
            self.inside(looks(false, true))?
        } else if self.take("?<=") {
            self.inside_back(looks(true, false))?
        } else if self.take("?<!") {
            self.inside_back(looks(true, true))?
        } else if self.take("?>") {
            self.inside(Node::Atomic)?
        } else if self.take("?:") {
            self.inside(|node| *node)?
        } else if self.take("?<") {
            self.name()?;
            self.inside(captures)?
        } else if self.take("?") {
            return self.flagged();
        } else {
            self.inside(captures)?
        }))
    }

    /// What a group holds, up to its parenthesis.
    fn inside(&mut self, made: impl Fn(Box<Node>) -> Node) -> Result<Node, Fault> {
        let node = self.alternatives()?;
        if !self.take(")") {
            return Err(self.invalid("a group that does not end"));
        }
        Ok(made(Box::new(node)))
    }

    /// What a look back holds: alternatives, each of a length that is always the same.
    fn inside_back(&mut self, made: impl Fn(Box<Node>) -> Node) -> Result<Node, Fault> {
        let look = self.inside(|node| *node)?;
        let all = match &look {
            Node::Any(all) => all.as_slice(),
            node => std::slice::from_ref(node),
        };
        match all.iter().all(|node| node.back().is_some()) {
            true => Ok(made(Box::new(look))),
            false => Err(self.unsupported("a look back over no fixed length")),
        }
    }

    /// The name of a group, which no one asks for.
    fn name(&mut self) -> Result<(), Fault> {
        let Some(name) = self.take_up_to('>') else {
            return Err(self.invalid("a group whose name does not end"));
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_plain) {
            true => Ok(()),
            false => Err(self.unsupported("a group with such a name")),
        }
    }

    /// Flags, for a group of their own or for the rest of the group around them.
    fn flagged(&mut self) -> Result<Part, Fault> {
        let mut flags = self.flags;
        let mut on = true;
        let mut is_first = true;
        loop {
            let Some(flag) = self.next() else {
                return Err(self.invalid("a group that does not end"));
            };
            match flag {
                '-' => on = false,
                'i' => flags.ignore_case = on,
                'm' => flags.dot_matches_all = on,
                ')' if is_first => break,
                ')' | ':' => {
                    let around = std::mem::replace(&mut self.flags, flags);
                    let captures = false;
                    let group = |node| Node::Group { node, captures };
                    let part = match flag {
                        ':' => Part::Whole(self.inside(group)?),
                        _ => Part::Rest(group(Box::new(self.alternatives()?))),
                    };
                    self.flags = around;
                    return Ok(part);
                }
                'x' | 'W' | 'D' | 'S' | 'P' | 'y' | 'C' | 'I' | 'L' | '~' | '(' | '{' | '\'' => {
                    return Err(self.unsupported(&format!("a group or flag of the kind (?{flag}")));
                }
                _ => break,
            }
            is_first = false;
        }
        Err(self.invalid("a group or flag that there is not"))
    }
}

/// What a parenthesis opens.
enum Part {
    /// A group.
    Whole(Node),
    /// All that is left of the group around it.
    Rest(Node),
}

/// A quantifier.
struct Count {
    least: u32,
    most: u32,
    how: How,
}

#[derive(PartialEq, Eq)]
enum How {
    Greedy,
    Lazy,
    Possessive,
}

/// The pattern for a message, cut where it is long.
fn shown(pattern: &str) -> &str {
    const LONGEST: usize = 200;
    pattern
        .char_indices()
        .nth(LONGEST)
        .map_or(pattern, |(end, _)| &pattern[..end])
}
