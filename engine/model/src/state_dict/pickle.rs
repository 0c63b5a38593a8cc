//! The pickle of a state dict: which tensors there are, and where their elements lie.
//!
//! Format: Python's `pickletools`, protocol 2. Only the operations are known that such a pickle has, and a class or function is only
//! its name here. Values are nested four deep at the most, and a value that is remembered is shared and not copied, so a short pickle
//! cannot ask for much memory.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Fault, damaged, unsupported};

/// How deep values may be nested; those of a state dict are three deep.
const DEEPEST: usize = 4;

/// More extents than a layer's tensor has.
const MOST_EXTENTS: usize = 8;

/// Characters of an unknown name that a message has.
const SHOWN: usize = 80;

/// The type of a storage's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    F32,
    F16,
    BF16,
}

impl Element {
    /// Bytes of an element.
    pub(super) fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }
}

/// A tensor, and where its elements are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) element: Element,
    /// The name of its storage.
    pub(super) key: Rc<str>,
    /// Elements of the storage.
    pub(super) len: usize,
    /// The first element of the tensor in it.
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    /// Elements from one place to the next, for each extent.
    pub(super) strides: Vec<usize>,
}

/// The classes and functions that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Global {
    OrderedDict,
    RebuildTensor,
    Storage(Element),
}

/// A value on the stack.
#[derive(Debug, Clone)]
enum Value {
    /// Where a list of values begins.
    Mark,
    Bool,
    Int(usize),
    Text(Rc<str>),
    Global(Global),
    Tuple(Rc<[Value]>, usize),
    Dict(Vec<(Rc<str>, Value)>, usize),
    Storage(Element, Rc<str>, usize),
    Tensor(Rc<Stored>),
}

impl Value {
    /// How deep values are nested in it.
    fn depth(&self) -> usize {
        match self {
            Self::Tuple(_, depth) | Self::Dict(_, depth) => *depth,
            _ => 0,
        }
    }

    fn numbers(&self) -> Option<Vec<usize>> {
        let Self::Tuple(values, _) = self else {
            return None;
        };
        let numbers = values.iter().map(|value| match value {
            Self::Int(number) => Some(*number),
            _ => None,
        });
        numbers.collect()
    }
}

/// The tensors of a pickled state dict, by their names, in the file's order.
///
/// # Errors
/// A fault for a pickle that is cut short, or holds anything else.
pub(super) fn tensors(pickle: &[u8]) -> Result<Vec<(Rc<str>, Stored)>, Fault> {
    let mut machine = Machine {
        rest: pickle,
        stack: Vec::new(),
        memo: HashMap::new(),
    };
    while machine.step()? {}
    if !machine.rest.is_empty() {
        return damaged("there is something behind the pickle's end");
    }
    let (Some(Value::Dict(entries, _)), true) = (machine.stack.pop(), machine.stack.is_empty())
    else {
        return unsupported("its pickle is no dictionary");
    };
    let tensors = entries.into_iter().map(|(name, value)| match value {
        Value::Tensor(stored) => Ok((name, Rc::unwrap_or_clone(stored))),
        _ => unsupported(format!("its entry {name:?} is no tensor")),
    });
    tensors.collect()
}

struct Machine<'p> {
    rest: &'p [u8],
    stack: Vec<Value>,
    memo: HashMap<u32, Value>,
}

impl<'p> Machine<'p> {
    /// Does the next operation. Whether there is one more.
    fn step(&mut self) -> Result<bool, Fault> {
        match self.byte()? {
            // PROTO
            0x80 => match self.byte()? {
                2 => {}
                other => return unsupported(format!("its pickle has the protocol {other}")),
            },
            // STOP
            b'.' => return Ok(false),
            b'(' => self.stack.push(Value::Mark),
            // NEWTRUE, NEWFALSE
            0x88 | 0x89 => self.stack.push(Value::Bool),
            // BININT1, BININT2, BININT
            b'K' => self.integer::<1>()?,
            b'M' => self.integer::<2>()?,
            b'J' => self.integer::<4>()?,
            // BINUNICODE
            b'X' => {
                let bytes = u32::from_le_bytes(self.array()?);
                let text = self.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
                match std::str::from_utf8(text) {
                    Ok(text) => self.stack.push(Value::Text(text.into())),
                    Err(_) => return damaged("a text in its pickle is not UTF-8"),
                }
            }
            // GLOBAL
            b'c' => self.global()?,
            // EMPTY_TUPLE, TUPLE1, TUPLE2, TUPLE3, TUPLE
            b')' => self.tuple(self.stack.len())?,
            size @ 0x85..=0x87 => match self.stack.len().checked_sub(usize::from(size - 0x84)) {
                Some(first) => self.tuple(first)?,
                None => return damaged("its pickle takes a value that is not there"),
            },
            b't' => {
                let mark = self.mark()?;
                self.tuple(mark + 1)?;
                self.stack.remove(mark);
            }
            // EMPTY_DICT, SETITEM, SETITEMS
            b'}' => self.stack.push(Value::Dict(Vec::new(), 1)),
            b's' => match self.stack.len().checked_sub(2) {
                Some(first) => self.set_items(first)?,
                None => return damaged("its pickle takes a value that is not there"),
            },
            b'u' => {
                let mark = self.mark()?;
                self.stack.remove(mark);
                self.set_items(mark)?;
            }
            // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
            b'q' => {
                let place = u32::from(self.byte()?);
                self.remember(place)?;
            }
            b'r' => {
                let place = u32::from_le_bytes(self.array()?);
                self.remember(place)?;
            }
            b'h' => {
                let place = u32::from(self.byte()?);
                self.recall(place)?;
            }
            b'j' => {
                let place = u32::from_le_bytes(self.array()?);
                self.recall(place)?;
            }
            // BINPERSID
            b'Q' => self.storage()?,
            b'R' => self.reduce()?,
            b'b' => self.build()?,
            other => {
                return unsupported(format!(
                    "its pickle has the operation 0x{other:02x}, which no state dict of tensors has"
                ));
            }
        }
        Ok(true)
    }

    fn take(&mut self, bytes: usize) -> Result<&'p [u8], Fault> {
        let Some((own, rest)) = self.rest.split_at_checked(bytes) else {
            return damaged("its pickle is cut short");
        };
        self.rest = rest;
        Ok(own)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        self.array().map(|[byte]| byte)
    }

    fn pop(&mut self) -> Result<Value, Fault> {
        match self.stack.pop() {
            Some(value) => Ok(value),
            None => damaged("its pickle takes a value that is not there"),
        }
    }

    /// The place of the last mark.
    fn mark(&self) -> Result<usize, Fault> {
        let mark = self
            .stack
            .iter()
            .rposition(|value| matches!(value, Value::Mark));
        mark.map_or_else(|| damaged("its pickle takes values that are not there"), Ok)
    }

    fn integer<const N: usize>(&mut self) -> Result<(), Fault> {
        let own: [u8; N] = self.array()?;
        let mut bytes = [0; 4];
        bytes[..N].copy_from_slice(&own);
        // Four bytes have a sign, fewer have none.
        match usize::try_from(i32::from_le_bytes(bytes)) {
            Ok(number) => self.stack.push(Value::Int(number)),
            Err(_) => return damaged("a number in its pickle is negative"),
        }
        Ok(())
    }

    fn global(&mut self) -> Result<(), Fault> {
        let mut line = || {
            let end = self.rest.iter().position(|&byte| byte == b'\n');
            let Some(end) = end else {
                return damaged("its pickle is cut short");
            };
            let line = String::from_utf8_lossy(&self.rest[..end]);
            self.rest = &self.rest[end + 1..];
            Ok(line)
        };
        let (module, name) = (line()?, line()?);
        let global = match (&*module, &*name) {
            ("collections", "OrderedDict") => Global::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2") => Global::RebuildTensor,
            ("torch", "FloatStorage") => Global::Storage(Element::F32),
            ("torch", "HalfStorage") => Global::Storage(Element::F16),
            ("torch", "BFloat16Storage") => Global::Storage(Element::BF16),
            _ => {
                let asked = format!("{module}.{name}");
                let shown: String = asked.chars().take(SHOWN).collect();
                return unsupported(format!("its pickle asks for {shown}"));
            }
        };
        self.stack.push(Value::Global(global));
        Ok(())
    }

    /// Makes a tuple of the values from the stack's place `first` on.
    fn tuple(&mut self, first: usize) -> Result<(), Fault> {
        let values = self.stack.split_off(first);
        let depth = nested(&values)?;
        self.stack.push(Value::Tuple(values.into(), depth));
        Ok(())
    }

    /// Puts the pairs from the stack's place `first` on into the dictionary before them.
    fn set_items(&mut self, first: usize) -> Result<(), Fault> {
        let values = self.stack.split_off(first);
        let deeper = nested(&values)?;
        let Some(Value::Dict(entries, depth)) = self.stack.last_mut() else {
            return damaged("its pickle puts entries into something else than a dictionary");
        };
        *depth = deeper.max(*depth);
        let mut values = values.into_iter();
        while let Some(key) = values.next() {
            match (key, values.next()) {
                (Value::Text(key), Some(value)) => entries.push((key, value)),
                _ => return unsupported("a dictionary in its pickle has a key that is no text"),
            }
        }
        Ok(())
    }

    fn remember(&mut self, place: u32) -> Result<(), Fault> {
        match self.stack.last() {
            // It may change yet, and no state dict asks for one again.
            Some(Value::Dict(..)) => {}
            Some(Value::Mark) | None => {
                return damaged("its pickle remembers a value that is not there");
            }
            Some(value) => {
                self.memo.insert(place, value.clone());
            }
        }
        Ok(())
    }

    fn recall(&mut self, place: u32) -> Result<(), Fault> {
        match self.memo.get(&place) {
            Some(value) => self.stack.push(value.clone()),
            None => return damaged("its pickle recalls a value that it did not remember"),
        }
        Ok(())
    }

    /// `('storage', class, key, device, elements)`. The device does not matter to who reads the elements.
    fn storage(&mut self) -> Result<(), Fault> {
        if let Value::Tuple(values, _) = self.pop()?
            && let [
                Value::Text(kind),
                Value::Global(Global::Storage(element)),
                Value::Text(key),
                Value::Text(_),
                Value::Int(len),
            ] = &*values
            && &**kind == "storage"
        {
            self.stack
                .push(Value::Storage(*element, Rc::clone(key), *len));
            return Ok(());
        }
        unsupported("its pickle names something else outside it than a storage")
    }

    fn reduce(&mut self) -> Result<(), Fault> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let Value::Tuple(arguments, _) = arguments else {
            return damaged("its pickle calls something without arguments");
        };
        let value = match (function, &*arguments) {
            (Value::Global(Global::OrderedDict), []) => Value::Dict(Vec::new(), 1),
            (
                Value::Global(Global::RebuildTensor),
                [
                    Value::Storage(element, key, len),
                    Value::Int(offset),
                    shape,
                    strides,
                    Value::Bool,
                    Value::Dict(hooks, _),
                ],
            ) if hooks.is_empty() => {
                let (Some(shape), Some(strides)) = (shape.numbers(), strides.numbers()) else {
                    return damaged("a tensor's shape is no list of numbers");
                };
                if shape.len() != strides.len() || shape.len() > MOST_EXTENTS {
                    return damaged("a tensor has more extents than a layer's, or other strides");
                }
                Value::Tensor(Rc::new(Stored {
                    element: *element,
                    key: Rc::clone(key),
                    len: *len,
                    offset: *offset,
                    shape,
                    strides,
                }))
            }
            _ => {
                return unsupported("its pickle calls something in a way that no state dict has");
            }
        };
        self.stack.push(value);
        Ok(())
    }

    /// What `torch` says of a state dict beside its tensors: the versions of the layers' code.
    fn build(&mut self) -> Result<(), Fault> {
        let state = self.pop()?;
        let (Value::Dict(state, _), Some(Value::Dict(..))) = (state, self.stack.last()) else {
            return unsupported("its pickle sets the state of something else than a dictionary");
        };
        match state.iter().find(|(name, _)| &**name != "_metadata") {
            Some((other, _)) => unsupported(format!("its pickle sets {other:?} of a dictionary")),
            None => Ok(()),
        }
    }
}

/// How deep a value of these is nested.
fn nested(values: &[Value]) -> Result<usize, Fault> {
    if values.iter().any(|value| matches!(value, Value::Mark)) {
        return damaged("its pickle takes a value that is not there");
    }
    let depth = 1 + values.iter().map(Value::depth).max().unwrap_or(0);
    match depth <= DEEPEST {
        true => Ok(depth),
        false => unsupported("values in its pickle are nested deeper than a state dict's"),
    }
}
