//! Parses brackets (`prs_cc` of Oniguruma's `regparse.c`).

use crate::error::Fault;
use crate::regex::class::Set;
use crate::regex::escape::Escaped;
use crate::regex::fold;
use crate::regex::named;
use crate::regex::parse::Parser;

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read since the bracket, or since `&&`.
    Start,
    /// A character that a hyphen may make the start of a range, or a set.
    Value(Option<char>),
    /// The character before a hyphen.
    Range(char),
    /// The end of a range, or a class.
    Complete,
}

enum Token {
    Close,
    Hyphen,
    Open,
    And,
    Character(char),
    Set(Set),
}

/// A class that was read.
struct Bracket {
    members: Set,
    /// It holds what is no member.
    negated: bool,
    /// A class inside it is negated.
    inverts: bool,
}

/// The members of a class while they are gathered: they are sorted once.
#[derive(Default)]
struct Members {
    ranges: Vec<(u32, u32)>,
    /// What stands before the last `&&`.
    left: Option<Set>,
}

impl Members {
    fn add(&mut self, first: char, last: char) {
        self.ranges.push((first.into(), last.into()));
    }

    /// Adds what was read as the start of a range that did not come.
    fn flush(&mut self, state: State) {
        if let State::Value(Some(character)) = state {
            self.add(character, character);
        }
    }

    fn set(&mut self) -> Set {
        let right = Set::new(std::mem::take(&mut self.ranges));
        match self.left.take() {
            Some(left) => left.intersection(&right),
            None => right,
        }
    }
}

impl Parser<'_> {
    /// What follows a bracket outside a class.
    pub(super) fn class(&mut self) -> Result<Set, Fault> {
        let class = self.bracket()?;
        // Oniguruma then holds none of the characters beyond ASCII, where it should hold all.
        if class.negated && class.inverts && class.members.is_ascii() {
            return Err(self.unsupported("a negated class of ASCII that is made by negation"));
        }
        let members = match self.flags.ignore_case {
            true => fold::without_case(&class.members)?,
            false => class.members,
        };
        Ok(match class.negated {
            true => members.negated(),
            false => members,
        })
    }

    fn bracket(&mut self) -> Result<Bracket, Fault> {
        self.enter()?;
        let negated = self.take("^");
        let mut inverts = false;
        let mut members = Members::default();
        let mut state = State::Start;
        let mut next = self.token()?;
        if matches!(next, Token::Close) {
            if !self.rest.contains(']') {
                return Err(self.invalid("a class of nothing"));
            }
            next = Token::Character(']');
        }
        loop {
            // A hyphen is what it is by what follows it, which is then the next token.
            let mut ahead = None;
            match next {
                Token::Close => break,
                Token::Character(character) => {
                    state = self.character(&mut members, state, character)?;
                }
                Token::Set(set) => {
                    if matches!(state, State::Range(_)) {
                        return Err(self.invalid("a range that ends in a set"));
                    }
                    members.flush(state);
                    members.ranges.extend(set.ranges());
                    state = State::Value(None);
                }
                Token::Open => {
                    if matches!(state, State::Range(_)) {
                        return Err(self.unsupported("a range that ends in a class"));
                    }
                    members.flush(state);
                    state = State::Complete;
                    let inner = self.bracket()?;
                    inverts |= inner.negated || inner.inverts;
                    let set = match inner.negated {
                        true => inner.members.negated(),
                        false => inner.members,
                    };
                    members.ranges.extend(self.count(set)?.ranges());
                }
                Token::And => {
                    members.flush(state);
                    state = State::Start;
                    members.left = Some(members.set());
                }
                Token::Hyphen if matches!(state, State::Range(_)) => {
                    state = self.character(&mut members, state, '-')?;
                }
                Token::Hyphen => {
                    let after = self.token()?;
                    let ends = matches!(after, Token::Close | Token::And);
                    state = match state {
                        State::Value(Some(character)) if !ends => State::Range(character),
                        State::Value(None) if !ends => {
                            return Err(self.invalid("a range that starts with a set"));
                        }
                        state => self.character(&mut members, state, '-')?,
                    };
                    ahead = Some(after);
                }
            }
            next = match ahead {
                Some(token) => token,
                None => self.token()?,
            };
        }
        members.flush(state);
        self.leave();
        Ok(Bracket {
            members: members.set(),
            negated,
            inverts,
        })
    }

    /// Takes a character into a class.
    fn character(
        &mut self,
        members: &mut Members,
        state: State,
        character: char,
    ) -> Result<State, Fault> {
        self.count(Set::of(character))?;
        let State::Range(first) = state else {
            members.flush(state);
            return Ok(State::Value(Some(character)));
        };
        if first > character {
            return Err(self.invalid("a range whose end comes before its start"));
        }
        members.add(first, character);
        Ok(State::Complete)
    }

    fn token(&mut self) -> Result<Token, Fault> {
        let Some(next) = self.next() else {
            return Err(self.invalid("a class that does not end"));
        };
        Ok(match next {
            ']' => Token::Close,
            '-' => Token::Hyphen,
            '[' => match self.posix()? {
                Some(set) => Token::Set(set),
                None => Token::Open,
            },
            '&' if self.take("&") => Token::And,
            '\\' => match self.escaped(named::Word::InClass)? {
                Escaped::Character(character) => Token::Character(character),
                Escaped::Set(set) => Token::Set(set),
            },
            literal => Token::Character(literal),
        })
    }

    /// Takes `:alpha:]` or `:^alpha:]`, where that stands after a bracket.
    fn posix(&mut self) -> Result<Option<Set>, Fault> {
        let Some(rest) = self.rest.strip_prefix(':') else {
            return Ok(None);
        };
        let (negated, name) = match rest.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let length = name.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, rest) = name.split_at(length);
        if rest.starts_with(|c: char| c.is_alphabetic()) {
            return Err(self.unsupported("a class with such a name"));
        }
        // Without a name `[:^:]` is one that there is not; `[::]` is a class of colons.
        let Some(rest) = rest.strip_prefix(":]").filter(|_| length > 0 || negated) else {
            return Ok(None);
        };
        self.rest = rest;
        let set = named::posix(name)?;
        self.count(if negated { set.negated() } else { set })
            .map(Some)
    }
}
