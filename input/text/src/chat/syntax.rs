//! Reads what stands in tags: words, and the tree of statements that they make.

use super::pieces::{Piece, cut};
use super::{Fault, wrong};

/// More tags within tags than any template has, and more operators within operators.
const DEEPEST: usize = 64;

/// More words than any tag has: no tree is deeper than it has words.
const MOST_WORDS: usize = 400;

/// A statement.
#[derive(Debug)]
pub(super) enum Node {
    Text(String),
    Output(Expression, usize),
    /// Names, of which the second is an attribute, and the value.
    Set(String, Option<String>, Expression, usize),
    /// Writes what is inside into a name.
    Capture(String, Vec<Node>),
    For {
        name: String,
        list: Expression,
        only: Option<Expression>,
        body: Vec<Node>,
        otherwise: Vec<Node>,
        line: usize,
    },
    /// Conditions with what follows of each, and what follows of none.
    If(Vec<(Expression, Vec<Node>, usize)>, Vec<Node>),
}

/// What has a value.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Text(String),
    Number(i64),
    Flag(bool),
    None,
    Name(String),
    List(Vec<Expression>),
    /// `x.name` and `x["name"]`, `x[0]`.
    Item(Box<Expression>, Box<Expression>),
    /// `x[from:to:step]`.
    Slice(Box<Expression>, [Option<Box<Expression>>; 3]),
    /// `x.name(...)`, or `name(...)` without an `x`.
    Call(Option<Box<Expression>>, String, Arguments),
    /// `x | name(...)`.
    Filter(Box<Expression>, String, Arguments),
    /// `x is name(...)`, and whether that is turned round.
    Test(Box<Expression>, String, Arguments, bool),
    Not(Box<Expression>),
    Minus(Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// The condition, what it is if so, and if not.
    Choice(Box<Expression>, Box<Expression>, Option<Box<Expression>>),
}

/// Arguments by their place, and by their name.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    pub(super) list: Vec<Expression>,
    pub(super) named: Vec<(String, Expression)>,
}

/// The statements of a template.
pub(super) fn parse(template: &str) -> Result<Vec<Node>, Fault> {
    let mut pieces = cut(template)?.into_iter();
    let (nodes, end) = body(&mut pieces, &[], 0)?;
    match end {
        None => Ok(nodes),
        Some((_, word, line)) => Err(wrong(line, format!("{word} ends nothing"))),
    }
}

type End<'t> = Option<(Words<'t>, String, usize)>;

/// Statements up to a block that begins with one of these words, and that block.
fn body<'t>(
    pieces: &mut std::vec::IntoIter<Piece<'t>>,
    ends: &[&str],
    depth: usize,
) -> Result<(Vec<Node>, End<'t>), Fault> {
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        let (inside, line) = match piece {
            Piece::Text(text) => {
                nodes.push(Node::Text(text.to_owned()));
                continue;
            }
            Piece::Output(inside, line) => {
                let mut words = Words::new(inside, line)?;
                let value = words.expression(0)?;
                words.end()?;
                nodes.push(Node::Output(value, line));
                continue;
            }
            Piece::Block(inside, line) => (inside, line),
        };
        if depth > DEEPEST {
            return Err(wrong(line, "blocks are nested too deeply".into()));
        }
        let mut words = Words::new(inside, line)?;
        let word = words.name()?;
        if ends.contains(&&*word) {
            return Ok((nodes, Some((words, word, line))));
        }
        let unclosed = |what: &str| wrong(line, format!("{what} is not ended"));
        match &*word {
            "set" => {
                let name = words.name()?;
                let attribute = match words.take(".") {
                    true => Some(words.name()?),
                    false => None,
                };
                if words.take("=") {
                    let value = words.expression(0)?;
                    words.end()?;
                    nodes.push(Node::Set(name, attribute, value, line));
                } else {
                    words.end()?;
                    let (inside, end) = body(pieces, &["endset"], depth + 1)?;
                    end.ok_or_else(|| unclosed("set"))?.0.end()?;
                    nodes.push(Node::Capture(name, inside));
                }
            }
            "for" => {
                let name = words.name()?;
                words.need("in")?;
                // A condition behind the list is the loop's own, and no choice of lists.
                let list = words.or(0)?;
                let only = match words.take("if") {
                    true => Some(words.expression(0)?),
                    false => None,
                };
                words.end()?;
                let (inside, end) = body(pieces, &["else", "endfor"], depth + 1)?;
                let (rest, word, _) = end.ok_or_else(|| unclosed("for"))?;
                rest.end()?;
                let otherwise = match &*word {
                    "else" => {
                        let (otherwise, end) = body(pieces, &["endfor"], depth + 1)?;
                        end.ok_or_else(|| unclosed("for"))?.0.end()?;
                        otherwise
                    }
                    _ => Vec::new(),
                };
                nodes.push(Node::For {
                    name,
                    list,
                    only,
                    body: inside,
                    otherwise,
                    line,
                });
            }
            "if" => {
                let (mut arms, mut otherwise) = (Vec::new(), Vec::new());
                let (mut words, mut at) = (words, line);
                loop {
                    let condition = words.expression(0)?;
                    words.end()?;
                    let (inside, end) = body(pieces, &["elif", "else", "endif"], depth + 1)?;
                    arms.push((condition, inside, at));
                    let (rest, word, line) = end.ok_or_else(|| unclosed("if"))?;
                    match &*word {
                        "elif" => (words, at) = (rest, line),
                        "else" => {
                            rest.end()?;
                            let (inside, end) = body(pieces, &["endif"], depth + 1)?;
                            end.ok_or_else(|| unclosed("if"))?.0.end()?;
                            otherwise = inside;
                            break;
                        }
                        _ => {
                            rest.end()?;
                            break;
                        }
                    }
                }
                nodes.push(Node::If(arms, otherwise));
            }
            // What a model is trained to write, which changes nothing of what is written.
            "generation" | "endgeneration" => words.end()?,
            other => return Err(wrong(line, format!("the block {other} is not known"))),
        }
    }
    Ok((nodes, None))
}

/// A word of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word<'t> {
    Name(&'t str),
    Number(i64),
    Text(String),
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 20] = [
    "==", "!=", "<=", ">=", "<", ">", "=", "~", "+", "-", "*", "%", "|", ".", ",", ":", "(", ")",
    "[", "]",
];

/// The words of a tag that are left.
struct Words<'t> {
    words: Vec<Word<'t>>,
    at: usize,
    line: usize,
}

impl<'t> Words<'t> {
    fn new(text: &'t str, line: usize) -> Result<Self, Fault> {
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let length = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
            let taken = match first {
                '"' | '\'' => {
                    let (text, taken) = string(rest, first)
                        .ok_or_else(|| wrong(line, "a string is not closed".into()))?;
                    // Strings one behind the other are one.
                    match words.last_mut() {
                        Some(Word::Text(before)) => before.push_str(&text),
                        _ => words.push(Word::Text(text)),
                    }
                    taken
                }
                first if first.is_ascii_digit() => {
                    let taken = length(&|c| c.is_ascii_digit());
                    let number = rest[..taken].parse();
                    words.push(Word::Number(
                        number.map_err(|_| wrong(line, "a number is too large".into()))?,
                    ));
                    taken
                }
                first if is_name(first) => {
                    let taken = length(&is_name);
                    words.push(Word::Name(&rest[..taken]));
                    taken
                }
                _ => {
                    let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                    let sign =
                        sign.ok_or_else(|| wrong(line, format!("{first:?} is not known")))?;
                    words.push(Word::Sign(sign));
                    sign.len()
                }
            };
            rest = rest[taken..].trim_start();
            if words.len() > MOST_WORDS {
                return Err(wrong(
                    line,
                    format!("a tag has more than {MOST_WORDS} words"),
                ));
            }
        }
        Ok(Self { words, at: 0, line })
    }

    fn fault(&self) -> Fault {
        let found = match self.words.get(self.at) {
            None => "the end of the tag".to_owned(),
            Some(Word::Name(name)) => (*name).to_owned(),
            Some(Word::Number(number)) => number.to_string(),
            Some(Word::Text(text)) => format!("{text:?}"),
            Some(Word::Sign(sign)) => (*sign).to_owned(),
        };
        wrong(self.line, format!("syntax error at {found}"))
    }

    /// Takes a sign or a word of the language, if it is the next.
    fn take(&mut self, wanted: &str) -> bool {
        let is = match self.words.get(self.at) {
            Some(Word::Name(name)) => *name == wanted,
            Some(Word::Sign(sign)) => *sign == wanted,
            _ => false,
        };
        self.at += usize::from(is);
        is
    }

    fn need(&mut self, wanted: &str) -> Result<(), Fault> {
        match self.take(wanted) {
            true => Ok(()),
            false => Err(self.fault()),
        }
    }

    fn name(&mut self) -> Result<String, Fault> {
        let Some(Word::Name(name)) = self.words.get(self.at) else {
            return Err(self.fault());
        };
        self.at += 1;
        Ok((*name).to_owned())
    }

    fn end(&self) -> Result<(), Fault> {
        match self.at == self.words.len() {
            true => Ok(()),
            false => Err(self.fault()),
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Expression, Fault> {
        let value = self.or(depth)?;
        if !self.take("if") {
            return Ok(value);
        }
        let condition = self.or(depth + 1)?;
        let otherwise = match self.take("else") {
            true => Some(Box::new(self.expression(depth + 1)?)),
            false => None,
        };
        Ok(Expression::Choice(
            condition.into(),
            value.into(),
            otherwise,
        ))
    }

    fn or(&mut self, depth: usize) -> Result<Expression, Fault> {
        self.binary(depth, &["or"], Self::and)
    }

    fn and(&mut self, depth: usize) -> Result<Expression, Fault> {
        self.binary(depth, &["and"], Self::not)
    }

    fn not(&mut self, depth: usize) -> Result<Expression, Fault> {
        if depth > DEEPEST {
            return Err(wrong(self.line, "operators are nested too deeply".into()));
        }
        match self.take("not") {
            true => Ok(Expression::Not(self.not(depth + 1)?.into())),
            false => self.compared(depth),
        }
    }

    fn compared(&mut self, depth: usize) -> Result<Expression, Fault> {
        let left = self.added(depth)?;
        for sign in ["==", "!=", "<=", ">=", "<", ">", "in"] {
            if self.take(sign) {
                let right = self.added(depth)?;
                return Ok(Expression::Binary(sign, left.into(), right.into()));
            }
        }
        if matches!(
            self.words.get(self.at..),
            Some([Word::Name("not"), Word::Name("in"), ..])
        ) {
            self.at += 2;
            let right = self.added(depth)?;
            let within = Expression::Binary("in", left.into(), right.into());
            return Ok(Expression::Not(within.into()));
        }
        Ok(left)
    }

    fn added(&mut self, depth: usize) -> Result<Expression, Fault> {
        self.binary(depth, &["+", "-"], Self::joined)
    }

    fn joined(&mut self, depth: usize) -> Result<Expression, Fault> {
        self.binary(depth, &["~"], Self::multiplied)
    }

    fn multiplied(&mut self, depth: usize) -> Result<Expression, Fault> {
        self.binary(depth, &["*", "%"], Self::unary)
    }

    fn binary(
        &mut self,
        depth: usize,
        signs: &[&'static str],
        next: fn(&mut Self, usize) -> Result<Expression, Fault>,
    ) -> Result<Expression, Fault> {
        let mut left = next(self, depth)?;
        let mut links = depth;
        while let Some(sign) = signs.iter().find(|sign| self.take(sign)) {
            links += 1;
            // Each link is one level deeper for whoever walks the tree.
            if links > DEEPEST {
                return Err(wrong(self.line, "operators are nested too deeply".into()));
            }
            left = Expression::Binary(sign, left.into(), next(self, depth)?.into());
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Result<Expression, Fault> {
        if depth > DEEPEST {
            return Err(wrong(self.line, "operators are nested too deeply".into()));
        }
        if self.take("-") {
            return Ok(Expression::Minus(self.unary(depth + 1)?.into()));
        }
        let mut value = self.primary(depth)?;
        let mut links = depth;
        loop {
            links += 1;
            if links > DEEPEST {
                return Err(wrong(self.line, "operators are nested too deeply".into()));
            }
            value = if self.take(".") {
                let name = self.name()?;
                match self.take("(") {
                    true => Expression::Call(Some(value.into()), name, self.arguments(depth)?),
                    false => Expression::Item(value.into(), Expression::Text(name).into()),
                }
            } else if self.take("[") {
                self.index(value, depth)?
            } else if self.take("|") {
                let name = self.name()?;
                let arguments = self.arguments_if_any(depth)?;
                Expression::Filter(value.into(), name, arguments)
            } else if self.take("is") {
                let turned = self.take("not");
                let name = self.name()?;
                let mut arguments = self.arguments_if_any(depth)?;
                // `x is equalto y` as well.
                if arguments.list.is_empty()
                    && matches!(
                        self.words.get(self.at),
                        Some(Word::Text(_) | Word::Number(_))
                    )
                {
                    arguments.list.push(self.primary(depth)?);
                }
                Expression::Test(value.into(), name, arguments, turned)
            } else {
                return Ok(value);
            };
        }
    }

    fn index(&mut self, value: Expression, depth: usize) -> Result<Expression, Fault> {
        let mut parts: [Option<Box<Expression>>; 3] = [None, None, None];
        let mut part = 0;
        let mut is_slice = false;
        loop {
            if self.take("]") {
                break;
            }
            if self.take(":") {
                is_slice = true;
                part += 1;
                if part > 2 {
                    return Err(self.fault());
                }
                continue;
            }
            if parts[part].is_some() {
                return Err(self.fault());
            }
            parts[part] = Some(self.expression(depth + 1)?.into());
        }
        match (is_slice, parts) {
            (true, parts) => Ok(Expression::Slice(value.into(), parts)),
            (false, [Some(at), ..]) => Ok(Expression::Item(value.into(), at)),
            _ => Err(self.fault()),
        }
    }

    fn primary(&mut self, depth: usize) -> Result<Expression, Fault> {
        let Some(word) = self.words.get(self.at).cloned() else {
            return Err(self.fault());
        };
        self.at += 1;
        Ok(match word {
            Word::Text(text) => Expression::Text(text),
            Word::Number(number) => Expression::Number(number),
            Word::Name("true" | "True") => Expression::Flag(true),
            Word::Name("false" | "False") => Expression::Flag(false),
            Word::Name("none" | "None") => Expression::None,
            Word::Name("not" | "and" | "or" | "if" | "else" | "in" | "is") => {
                self.at -= 1;
                return Err(self.fault());
            }
            Word::Name(name) => match self.take("(") {
                true => Expression::Call(None, name.to_owned(), self.arguments(depth)?),
                false => Expression::Name(name.to_owned()),
            },
            Word::Sign("(") => {
                let inside = self.expression(depth + 1)?;
                self.need(")")?;
                inside
            }
            Word::Sign("[") => {
                let mut list = Vec::new();
                while !self.take("]") {
                    list.push(self.expression(depth + 1)?);
                    if !self.take(",") {
                        self.need("]")?;
                        break;
                    }
                }
                Expression::List(list)
            }
            Word::Sign(_) => {
                self.at -= 1;
                return Err(self.fault());
            }
        })
    }

    fn arguments_if_any(&mut self, depth: usize) -> Result<Arguments, Fault> {
        match self.take("(") {
            true => self.arguments(depth),
            false => Ok(Arguments::default()),
        }
    }

    /// Arguments behind their parenthesis.
    fn arguments(&mut self, depth: usize) -> Result<Arguments, Fault> {
        let mut arguments = Arguments::default();
        while !self.take(")") {
            let named = matches!(
                self.words.get(self.at..),
                Some([Word::Name(_), Word::Sign("="), ..])
            );
            match named {
                true => {
                    let name = self.name()?;
                    self.need("=")?;
                    let value = self.expression(depth + 1)?;
                    arguments.named.push((name, value));
                }
                false => arguments.list.push(self.expression(depth + 1)?),
            }
            if !self.take(",") {
                self.need(")")?;
                break;
            }
        }
        Ok(arguments)
    }
}

/// A string, and its length with the quotes.
fn string(text: &str, quote: char) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((out, at + 1));
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()?.1 {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            other @ ('\\' | '\'' | '"') => out.push(other),
            'u' => {
                let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
            }
            // As in Python, it is no escape then.
            other => out.extend(['\\', other]),
        }
    }
    None
}
