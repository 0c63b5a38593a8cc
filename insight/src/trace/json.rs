//! JSON from a stream, one value of an array or an object at a time.
//!
//! `serde_json` reads values out of a buffer several times as fast as byte by byte out of a
//! reader, and a trace need not fit into memory. So a buffer is filled, values are read from it
//! until one is not whole, and then the rest of it moves to the front and the buffer is filled on.

use std::io::Read;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::TraceError;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;
/// Bytes of one value, at most.
const LONGEST: usize = 64 << 20;

/// A stream of JSON, and where in it we are.
pub(super) struct Json<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The next byte, and the end of the bytes that were read.
    at: usize,
    filled: usize,
    /// Bytes that left the buffer.
    before: u64,
    ended: bool,
}

/// A value, or why there is none.
#[derive(Debug)]
pub(super) enum Got<T> {
    /// It could be read.
    Value(T),
    /// It is JSON, but not the expected value.
    Other,
    /// The file ends within it.
    Cut,
    /// It is not JSON.
    Broken(String),
}

impl<R: Read> Json<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: vec![0; PIECE],
            at: 0,
            filled: 0,
            before: 0,
            ended: false,
        }
    }

    /// Bytes before the next one.
    pub(super) fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The next byte that is no white space, which stays; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, TraceError> {
        loop {
            let rest = &self.buffer[self.at..self.filled];
            let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
            match rest.iter().position(|byte| !blank(byte)) {
                Some(skipped) => {
                    self.at += skipped;
                    return Ok(self.buffer.get(self.at).copied());
                }
                None => {
                    self.at = self.filled;
                    if !self.fill()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Takes the next byte that is no white space, if it is this one.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, TraceError> {
        let there = self.peek()? == Some(byte);
        self.at += usize::from(there);
        Ok(there)
    }

    /// Reads a value by `read`, which is one of [`read`]'s making, and may be called again when
    /// there are more bytes.
    pub(super) fn value<U>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> (serde_json::Result<U>, usize),
    ) -> Result<Got<U>, TraceError> {
        if self.peek()?.is_none() {
            return Ok(Got::Cut);
        }
        loop {
            let (result, length) = read(&self.buffer[self.at..self.filled]);
            let got = match result {
                Err(error) if error.is_eof() => match self.fill()? {
                    true => continue,
                    false => return Ok(Got::Cut),
                },
                Err(error) if error.is_data() => return self.skip(),
                Err(error) => return Ok(Got::Broken(error.to_string())),
                Ok(value) => Got::Value(value),
            };
            self.at += length;
            return Ok(got);
        }
    }

    /// Passes a value over.
    pub(super) fn skip<U>(&mut self) -> Result<Got<U>, TraceError> {
        let skipped = self.value(|bytes| self::read(bytes, |IgnoredAny| ()))?;
        Ok(match skipped {
            Got::Value(()) | Got::Other => Got::Other,
            Got::Cut => Got::Cut,
            Got::Broken(why) => Got::Broken(why),
        })
    }

    /// More bytes behind those that were not taken yet; `false` at the end.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.copy_within(self.at..self.filled, 0);
        self.before += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.buffer.len() {
            if self.filled >= LONGEST {
                return Err(TraceError::TooLong(LONGEST >> 20, self.before));
            }
            self.buffer.resize(self.filled * 2, 0);
        }
        let before = self.filled;
        // Up to the end of the buffer, however few bytes come at a time: a value that is not whole is read from its beginning
        // again, and that must not be for every piece of a pipe.
        while !self.ended && self.filled < self.buffer.len() {
            let free = &mut self.buffer[self.filled..];
            match self.reader.read(free) {
                Ok(0) => self.ended = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.filled > before)
    }
}

/// Reads the value at the beginning of `bytes`, hands it to `with`, and says how long it was.
pub(super) fn read<'b, T: Deserialize<'b>, U>(
    bytes: &'b [u8],
    with: impl FnOnce(T) -> U,
) -> (serde_json::Result<U>, usize) {
    let mut values = Deserializer::from_slice(bytes).into_iter::<T>();
    let value = values.next();
    let length = values.byte_offset();
    // A number that ends with the bytes may go on behind them, as no array or object does.
    let closed = matches!(bytes[..length].last(), Some(b'}' | b']' | b'"'));
    match value {
        Some(Ok(value)) if closed || length < bytes.len() => (Ok(with(value)), length),
        Some(Err(error)) => (Err(error), 0),
        _ => (serde_json::from_slice(b"").map(with), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Slow<'t>(&'t [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            let (now, later) = self.0.split_at(length);
            into[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    fn text(bytes: &[u8]) -> (serde_json::Result<String>, usize) {
        read(bytes, |text: String| text)
    }

    #[test]
    fn values_are_whole_wherever_the_pieces_end() {
        let all = " [ \"a \\\"b\\\" \u{e9}\" , 17, {\"x\": [1, \"]\"]}, \"end\"] ".as_bytes();
        for piece in 1..all.len() {
            let mut json = Json::new(Slow(all, piece));
            assert!(json.take(b'[').unwrap());
            let Got::Value(first) = json.value(text).unwrap() else {
                panic!("in pieces of {piece}")
            };
            assert_eq!(first, "a \"b\" \u{e9}");
            for _ in 0..2 {
                assert!(json.take(b',').unwrap());
                assert!(matches!(json.value(text).unwrap(), Got::Other));
            }
            assert!(json.take(b',').unwrap());
            assert!(matches!(json.value(text).unwrap(), Got::Value(end) if end == "end"));
            assert!(json.take(b']').unwrap());
            assert_eq!(json.peek().unwrap(), None);
            assert_eq!(json.position(), all.len() as u64);
        }
    }

    /// A value in many pieces is not read from its beginning for each of them.
    #[test]
    fn a_value_in_small_pieces_is_read_a_few_times() {
        let all = format!("\"{}\"", "a".repeat(PIECE * 3 / 2));
        let mut json = Json::new(Slow(all.as_bytes(), 1000));
        let mut times = 0;
        let got = json.value(|bytes| {
            times += 1;
            text(bytes)
        });
        assert!(matches!(got.unwrap(), Got::Value(_)));
        assert!(times <= 3, "{times}");
    }

    #[test]
    fn what_is_cut_and_what_is_broken_is_told_apart() {
        for (all, cut) in [
            (&b"\"a"[..], true),
            (b"", true),
            (b"{\"a\": 1", true),
            (b"{\"a\" 1}", false),
            (b"nope", false),
            (b"\"\xff\"", false),
        ] {
            let mut json = Json::new(all);
            let got = json.value(text).unwrap();
            match cut {
                true => assert!(matches!(got, Got::Cut), "{got:?}"),
                false => assert!(matches!(got, Got::Broken(_)), "{got:?}"),
            }
        }
    }

    #[test]
    fn a_value_without_an_end_is_refused_before_memory_is_gone() {
        let mut json = Json::new(std::io::repeat(b'a'));
        json.buffer[0] = b'"';
        json.filled = 1;
        let error = json.value(text).unwrap_err();
        assert!(matches!(error, TraceError::TooLong(..)), "{error}");
    }
}
