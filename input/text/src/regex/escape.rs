//! Parses a backslash, outside a class and inside (`fetch_token` and `fetch_token_cc` of Oniguruma's `regparse.c`). A
//! letter without a special meaning matches itself.

use crate::error::Fault;
use crate::regex::class::Set;
use crate::regex::named;
use crate::regex::node::{Assert, Node};
use crate::regex::parse::Parser;

/// What an escape stands for.
pub(super) enum Escaped {
    Character(char),
    Set(Set),
}

impl Parser<'_> {
    /// What follows a backslash outside a class, after the literal `before`.
    pub(super) fn escape(&mut self, before: Option<char>) -> Result<Node, Fault> {
        let assert = match self.peek() {
            Some('A') => Some(Assert::Start),
            Some('z') => Some(Assert::End),
            Some('Z') => Some(Assert::LastLine),
            Some('b') => Some(Assert::WordEdge),
            Some('B') => Some(Assert::NoWordEdge),
            _ => None,
        };
        if let Some(assert) = assert {
            self.next();
            return Ok(Node::Assert(assert));
        }
        match self.peek() {
            Some('R') => {
                self.next();
                return Ok(new_line());
            }
            Some('N') => {
                self.next();
                return Ok(Node::One(Set::all_but_line_feed()));
            }
            Some('O') => {
                self.next();
                return Ok(Node::One(Set::all()));
            }
            Some(letter @ ('G' | 'K' | 'X' | 'y' | 'Y' | 'k' | 'g' | '8' | '9')) => {
                return Err(self.unsupported(&format!("the escape \\{letter}")));
            }
            _ => {}
        }
        match self.escaped(named::Word::Alone)? {
            Escaped::Set(set) => Ok(Node::One(set)),
            Escaped::Character(literal) => self.literal(literal, before),
        }
    }

    /// What follows a backslash, where words are those of `word`.
    pub(super) fn escaped(&mut self, word: named::Word) -> Result<Escaped, Fault> {
        let Some(letter) = self.next() else {
            return Err(self.invalid("a backslash at its end"));
        };
        let set = match letter.to_ascii_lowercase() {
            'w' => Some(named::word(word)),
            'd' => Some(named::digits()),
            's' => Some(named::spaces()),
            'h' => Some(named::hexadecimal()),
            'p' if self.take("{") => {
                let Some(name) = self.take_up_to('}') else {
                    return Err(self.invalid("a brace that does not close"));
                };
                let (name, inverted) = match name.strip_prefix('^') {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let set = named::property(name, word)?;
                Some(if inverted { set.negated() } else { set })
            }
            _ => None,
        };
        if let Some(set) = set {
            let negated = letter.is_ascii_uppercase();
            let set = if negated { set.negated() } else { set };
            return self.count(set).map(Escaped::Set);
        }
        Ok(Escaped::Character(match letter {
            'a' => '\x07',
            'b' => '\x08',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => self.byte_or_code()?,
            'u' => {
                let digits = self.rest.get(..4).unwrap_or_default();
                self.rest = self.rest.get(4..).unwrap_or_default();
                self.code(digits)?
            }
            'o' if self.peek() == Some('{') => {
                return Err(self.unsupported("a code point in octal digits"));
            }
            // Octal numbers, references to groups, control and meta characters.
            '0'..='7' | 'c' | 'C' | 'M' => {
                return Err(self.unsupported(&format!("the escape \\{letter}")));
            }
            literal => literal,
        }))
    }

    /// What follows `\x`: a code point in braces, or a byte, of which only those that are a whole
    /// character are taken.
    fn byte_or_code(&mut self) -> Result<char, Fault> {
        if self.take("{") {
            return match self.take_up_to('}') {
                Some(digits) if digits.len() <= 8 => self.code(digits),
                _ => Err(self.unsupported("several code points in one escape")),
            };
        }
        let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
        let length = self.rest.bytes().take(2).take_while(is_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        match self.code(digits)? {
            code if code.is_ascii() => Ok(code),
            _ => Err(self.unsupported("a single byte of a character")),
        }
    }

    fn code(&self, digits: &str) -> Result<char, Fault> {
        let code = match digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => u32::from_str_radix(digits, 16).ok(),
            false => None,
        };
        code.and_then(char::from_u32)
            .ok_or_else(|| self.unsupported("an invalid code point"))
    }
}

/// `\R`: a line's end, of which a pair of carriage return and line feed is never torn apart.
fn new_line() -> Node {
    let pair = Node::All(vec![Node::One(Set::of('\r')), Node::One(Set::of('\n'))]);
    let single = Set::new(vec![(0x0a, 0x0d), (0x85, 0x85), (0x2028, 0x2029)]);
    Node::Atomic(Box::new(Node::Any(vec![pair, Node::One(single)])))
}
