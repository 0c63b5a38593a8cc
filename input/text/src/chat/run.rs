//! Runs a template within a budget of steps and of bytes.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::syntax::{Arguments, Expression, Node};
use super::{Fault, wrong};

/// Steps of a template, generously: a node of its tree each time that it is looked at, and an entry of a list.
const MOST_STEPS: usize = 100_000;

/// Bytes of all texts that a template makes.
const MOST_BYTES: usize = 4 << 20;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// What was never said.
    Undefined,
    None,
    Flag(bool),
    Number(i64),
    Text(Rc<str>),
    List(Rc<Vec<Value>>),
    Map(Rc<BTreeMap<String, Value>>),
    /// Names that blocks may change, by its place.
    Namespace(usize),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// Why an expression has no value, before its line is known.
type Why<T> = Result<T, String>;

/// A run of a template.
struct Run {
    scopes: Vec<BTreeMap<String, Value>>,
    namespaces: Vec<BTreeMap<String, Value>>,
    steps: usize,
    bytes: usize,
}

/// What a template writes.
pub(super) fn write(nodes: &[Node], globals: BTreeMap<String, Value>) -> Result<String, Fault> {
    let mut run = Run {
        scopes: vec![globals, BTreeMap::new()],
        namespaces: Vec::new(),
        steps: 0,
        bytes: 0,
    };
    let mut out = String::new();
    run.nodes(nodes, &mut out)?;
    Ok(out)
}

impl Run {
    fn nodes(&mut self, nodes: &[Node], out: &mut String) -> Result<(), Fault> {
        for node in nodes {
            self.node(node, out)?;
        }
        Ok(())
    }

    fn node(&mut self, node: &Node, out: &mut String) -> Result<(), Fault> {
        let at = |line: usize| move |why: String| wrong(line, why);
        match node {
            Node::Text(text) => {
                self.take(1, text.len()).map_err(at(0))?;
                out.push_str(text);
            }
            Node::Output(value, line) => {
                let value = self.value(value).map_err(at(*line))?;
                let text = self.text(&value).map_err(at(*line))?;
                out.push_str(&text);
            }
            Node::Set(name, attribute, value, line) => {
                let value = self.value(value).map_err(at(*line))?;
                match attribute {
                    None => self.set(name, value),
                    Some(attribute) => match self.look_up(name) {
                        Value::Namespace(place) => {
                            self.namespaces[place].insert(attribute.clone(), value);
                        }
                        _ => return Err(wrong(*line, format!("{name} is no namespace"))),
                    },
                }
            }
            Node::Capture(name, inside) => {
                let mut text = String::new();
                self.nodes(inside, &mut text)?;
                self.set(name, Value::from(&*text));
            }
            Node::For {
                name,
                list,
                only,
                body,
                otherwise,
                line,
            } => {
                let list = self.value(list).map_err(at(*line))?;
                let mut list = self.list(&list).map_err(at(*line))?.as_ref().clone();
                if let Some(only) = only {
                    let mut kept = Vec::new();
                    for value in list {
                        self.scopes.push([(name.clone(), value.clone())].into());
                        let is_kept = self.value(only).map(|only| truth(&only));
                        self.scopes.pop();
                        if is_kept.map_err(at(*line))? {
                            kept.push(value);
                        }
                    }
                    list = kept;
                }
                if list.is_empty() {
                    return self.nodes(otherwise, out);
                }
                let length = list.len();
                for (place, value) in list.into_iter().enumerate() {
                    let turn = place_of(place, length);
                    let scope = [(name.clone(), value), ("loop".to_owned(), turn)];
                    self.scopes.push(scope.into());
                    let done = self.nodes(body, out);
                    self.scopes.pop();
                    done?;
                }
            }
            Node::If(arms, otherwise) => {
                for (condition, inside, line) in arms {
                    if truth(&self.value(condition).map_err(at(*line))?) {
                        return self.nodes(inside, out);
                    }
                }
                self.nodes(otherwise, out)?;
            }
        }
        Ok(())
    }

    /// Takes steps, and bytes of text, off the budget.
    fn take(&mut self, steps: usize, bytes: usize) -> Why<()> {
        self.steps = self.steps.saturating_add(steps);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.steps > MOST_STEPS {
            return Err(format!("it takes more than {MOST_STEPS} steps"));
        }
        if self.bytes > MOST_BYTES {
            return Err(format!("it makes more than {MOST_BYTES} bytes of text"));
        }
        Ok(())
    }

    /// Takes the steps that looking at all of a value takes.
    fn weigh(&mut self, value: &Value) -> Why<()> {
        let steps = match value {
            Value::Text(text) => text.len() / 16,
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            _ => 0,
        };
        self.take(steps, 0)
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    fn look_up(&self, name: &str) -> Value {
        let mut scopes = self.scopes.iter().rev();
        let found = scopes.find_map(|scope| scope.get(name));
        found.cloned().unwrap_or(Value::Undefined)
    }

    fn value(&mut self, expression: &Expression) -> Why<Value> {
        self.take(1, 0)?;
        Ok(match expression {
            Expression::Text(text) => self.made(text.clone())?,
            Expression::Number(number) => Value::Number(*number),
            Expression::Flag(flag) => Value::Flag(*flag),
            Expression::None => Value::None,
            Expression::Name(name) => self.look_up(name),
            Expression::List(values) => {
                let values: Why<Vec<Value>> =
                    values.iter().map(|value| self.value(value)).collect();
                let values = values?;
                // Lists in lists could be as deep as there are steps.
                if let Some(inner) = values.iter().find(|value| !is_plain(value)) {
                    return Err(format!("{} stands in a list", kind(inner)));
                }
                Value::List(values.into())
            }
            Expression::Item(value, at) => {
                let (value, at) = (self.value(value)?, self.value(at)?);
                if let (Value::Text(_), Value::Number(_)) = (&value, &at) {
                    self.weigh(&value)?;
                }
                self.item(&value, &at)?
            }
            Expression::Slice(value, parts) => {
                let value = self.value(value)?;
                let mut numbers = [None; 3];
                for (number, part) in numbers.iter_mut().zip(parts) {
                    if let Some(part) = part {
                        *number = Some(whole(&self.value(part)?)?);
                    }
                }
                self.slice(&value, numbers)?
            }
            Expression::Call(None, name, arguments) => self.call(name, arguments)?,
            Expression::Call(Some(value), name, arguments) => {
                let value = self.value(value)?;
                let arguments = self.plain(arguments)?;
                self.method(&value, name, &arguments)?
            }
            Expression::Filter(value, name, arguments) => {
                let value = self.value(value)?;
                self.filter(&value, name, arguments)?
            }
            Expression::Test(value, name, arguments, turned) => {
                let value = self.value(value)?;
                let arguments = self.plain(arguments)?;
                Value::Flag(self.test(&value, name, &arguments)? != *turned)
            }
            Expression::Not(value) => Value::Flag(!truth(&self.value(value)?)),
            Expression::Minus(value) => {
                let number = whole(&self.value(value)?)?.checked_neg();
                Value::Number(number.ok_or("a number is too large")?)
            }
            Expression::Binary(sign, left, right) => self.binary(sign, left, right)?,
            Expression::Choice(condition, value, otherwise) => {
                match (truth(&self.value(condition)?), otherwise) {
                    (true, _) => self.value(value)?,
                    (false, Some(otherwise)) => self.value(otherwise)?,
                    (false, None) => Value::Undefined,
                }
            }
        })
    }

    fn binary(&mut self, sign: &str, left: &Expression, right: &Expression) -> Why<Value> {
        let left = self.value(left)?;
        // What decides alone leaves the other out.
        match sign {
            "and" if !truth(&left) => return Ok(left),
            "or" if truth(&left) => return Ok(left),
            "and" | "or" => return self.value(right),
            _ => {}
        }
        let right = self.value(right)?;
        if matches!(sign, "==" | "!=" | "<" | ">" | "<=" | ">=" | "in") {
            self.weigh(&left)?;
            self.weigh(&right)?;
        }
        let number = |result: Option<i64>| result.map(Value::Number).ok_or("a number is too large");
        Ok(match (sign, &left, &right) {
            ("==", ..) => Value::Flag(left == right),
            ("!=", ..) => Value::Flag(left != right),
            ("in", ..) => Value::Flag(self.holds(&right, &left)?),
            ("~", ..) => {
                let (left, right) = (self.text(&left)?, self.text(&right)?);
                self.made(format!("{left}{right}"))?
            }
            ("+", Value::Text(left), Value::Text(right)) => self.made(format!("{left}{right}"))?,
            ("+", Value::List(left), Value::List(right)) => {
                self.take(left.len() + right.len(), 0)?;
                Value::List(
                    left.iter()
                        .chain(right.iter())
                        .cloned()
                        .collect::<Vec<_>>()
                        .into(),
                )
            }
            ("+", Value::Number(left), Value::Number(right)) => number(left.checked_add(*right))?,
            ("-", Value::Number(left), Value::Number(right)) => number(left.checked_sub(*right))?,
            ("*", Value::Number(left), Value::Number(right)) => number(left.checked_mul(*right))?,
            ("%", Value::Number(left), Value::Number(right)) => {
                number(left.checked_rem_euclid(*right))?
            }
            ("<", ..) => Value::Flag(order(&left, &right)?.is_lt()),
            (">", ..) => Value::Flag(order(&left, &right)?.is_gt()),
            ("<=", ..) => Value::Flag(order(&left, &right)?.is_le()),
            (">=", ..) => Value::Flag(order(&left, &right)?.is_ge()),
            _ => {
                return Err(format!(
                    "{} {sign} {} has no value",
                    kind(&left),
                    kind(&right)
                ));
            }
        })
    }

    /// A text that was made.
    fn made(&mut self, text: String) -> Why<Value> {
        self.take(1, text.len())?;
        Ok(Value::from(&*text))
    }

    /// A value as it is written.
    fn text(&mut self, value: &Value) -> Why<Rc<str>> {
        let text: Rc<str> = match value {
            Value::Undefined => "".into(),
            Value::None => "None".into(),
            Value::Flag(true) => "True".into(),
            Value::Flag(false) => "False".into(),
            Value::Number(number) => number.to_string().into(),
            Value::Text(text) => Rc::clone(text),
            other => return Err(format!("{} cannot be written", kind(other))),
        };
        self.take(1, text.len())?;
        Ok(text)
    }

    /// The entries of a list; of nothing there are none.
    fn list(&mut self, value: &Value) -> Why<Rc<Vec<Value>>> {
        let list = match value {
            Value::List(list) => Rc::clone(list),
            Value::Undefined => Rc::default(),
            Value::Map(map) => {
                let keys = map.keys().map(|key| Value::from(&**key));
                keys.collect::<Vec<_>>().into()
            }
            other => return Err(format!("{} is no list", kind(other))),
        };
        self.take(list.len(), 0)?;
        Ok(list)
    }

    fn item(&self, value: &Value, at: &Value) -> Why<Value> {
        let found = match (value, at) {
            (Value::Undefined, _) => return Err("something is asked of what is not there".into()),
            (Value::Map(map), Value::Text(name)) => map.get(&**name).cloned(),
            (Value::Namespace(place), Value::Text(name)) => {
                self.namespaces[*place].get(&**name).cloned()
            }
            (Value::List(list), Value::Number(at)) => {
                let length = list.len() as i64;
                let at = if *at < 0 {
                    at.saturating_add(length)
                } else {
                    *at
                };
                usize::try_from(at)
                    .ok()
                    .and_then(|at| list.get(at).cloned())
            }
            (Value::Text(text), Value::Number(at)) => {
                let at = match *at < 0 {
                    true => at.saturating_add(text.chars().count() as i64),
                    false => *at,
                };
                let at = usize::try_from(at).ok();
                at.and_then(|at| text.chars().nth(at))
                    .map(|c| Value::from(&*c.to_string()))
            }
            _ => None,
        };
        Ok(found.unwrap_or(Value::Undefined))
    }

    /// As Python slices.
    fn slice(&mut self, value: &Value, [from, to, step]: [Option<i64>; 3]) -> Why<Value> {
        let values = match value {
            Value::Text(text) => text
                .chars()
                .map(|c| Value::from(&*c.to_string()))
                .collect::<Vec<_>>()
                .into(),
            other => self.list(other)?,
        };
        self.take(values.len(), 0)?;
        let (length, step) = (values.len() as i64, step.unwrap_or(1));
        if step == 0 {
            return Err("a slice has the step 0".into());
        }
        let (least, most) = if step > 0 {
            (0, length)
        } else {
            (-1, length - 1)
        };
        let place = |given: Option<i64>, default: i64| match given {
            None => default,
            Some(at) => {
                let at = if at < 0 {
                    at.saturating_add(length)
                } else {
                    at
                };
                at.clamp(least, most)
            }
        };
        let (mut at, end) = match step > 0 {
            true => (place(from, 0), place(to, length)),
            false => (place(from, length - 1), place(to, -1)),
        };
        let mut taken = Vec::new();
        while (step > 0 && at < end) || (step < 0 && at > end) {
            taken.extend(
                usize::try_from(at)
                    .ok()
                    .and_then(|at| values.get(at).cloned()),
            );
            at = at.saturating_add(step);
        }
        if matches!(value, Value::Text(_)) {
            let mut text = String::new();
            for value in &taken {
                text.push_str(&self.text(value)?);
            }
            return self.made(text);
        }
        Ok(Value::List(taken.into()))
    }

    fn holds(&mut self, values: &Value, value: &Value) -> Why<bool> {
        match (values, value) {
            (Value::Text(text), Value::Text(part)) => Ok(text.contains(&**part)),
            (Value::Map(map), Value::Text(name)) => Ok(map.contains_key(&**name)),
            (Value::Text(_), _) => Ok(false),
            (values, value) => Ok(self.list(values)?.contains(value)),
        }
    }

    fn test(&mut self, value: &Value, name: &str, arguments: &[Value]) -> Why<bool> {
        self.weigh(value)?;
        for other in arguments {
            self.weigh(other)?;
        }
        test(value, name, arguments)
    }

    /// The values of arguments without names.
    fn plain(&mut self, arguments: &Arguments) -> Why<Vec<Value>> {
        if let Some((name, _)) = arguments.named.first() {
            return Err(format!("the argument {name} is not known"));
        }
        arguments
            .list
            .iter()
            .map(|value| self.value(value))
            .collect()
    }

    fn call(&mut self, name: &str, arguments: &Arguments) -> Why<Value> {
        match name {
            "namespace" => {
                let mut names = BTreeMap::new();
                for (name, value) in &arguments.named {
                    names.insert(name.clone(), self.value(value)?);
                }
                self.namespaces.push(names);
                Ok(Value::Namespace(self.namespaces.len() - 1))
            }
            "raise_exception" => {
                let said = self.plain(arguments)?;
                let said = said.first().map(|said| self.text(said)).transpose()?;
                Err(said.map_or_else(|| "it refuses".to_owned(), |said| said.to_string()))
            }
            "range" => {
                let numbers = self.plain(arguments)?;
                let numbers: Why<Vec<i64>> = numbers.iter().map(whole).collect();
                let (from, to) = match numbers?[..] {
                    [to] => (0, to),
                    [from, to] => (from, to),
                    _ => return Err("range takes one or two numbers".into()),
                };
                let length = to.saturating_sub(from).max(0);
                self.take(usize::try_from(length).unwrap_or(usize::MAX), 0)?;
                Ok(Value::List(
                    (from..to).map(Value::Number).collect::<Vec<_>>().into(),
                ))
            }
            other => Err(format!("the function {other} is not known")),
        }
    }

    fn method(&mut self, value: &Value, name: &str, arguments: &[Value]) -> Why<Value> {
        let unknown = || format!("the method {name} of {} is not known", kind(value));
        let text = match (value, name, arguments) {
            (Value::Map(map), "get", [Value::Text(key), default @ ..]) => {
                let default = default.first().unwrap_or(&Value::None);
                return Ok(map.get(&**key).unwrap_or(default).clone());
            }
            (Value::Text(text), ..) => text,
            _ => return Err(unknown()),
        };
        let made = match (name, arguments) {
            ("strip", []) => text.trim(),
            ("lstrip", []) => text.trim_start(),
            ("rstrip", []) => text.trim_end(),
            ("strip", [Value::Text(of)]) => text.trim_matches(|c| of.contains(c)),
            ("lstrip", [Value::Text(of)]) => text.trim_start_matches(|c| of.contains(c)),
            ("rstrip", [Value::Text(of)]) => text.trim_end_matches(|c| of.contains(c)),
            ("startswith", [Value::Text(part)]) => {
                return Ok(Value::Flag(text.starts_with(&**part)));
            }
            ("endswith", [Value::Text(part)]) => return Ok(Value::Flag(text.ends_with(&**part))),
            ("lower", []) => return self.made(text.to_lowercase()),
            ("upper", []) => return self.made(text.to_uppercase()),
            ("replace", [Value::Text(from), Value::Text(to)]) => {
                return self.replaced(text, from, to);
            }
            ("split", [Value::Text(by)]) if !by.is_empty() => {
                let parts = text.split(&**by).map(Value::from).collect::<Vec<_>>();
                self.take(parts.len(), text.len())?;
                return Ok(Value::List(parts.into()));
            }
            _ => return Err(unknown()),
        };
        self.made(made.to_owned())
    }

    fn replaced(&mut self, text: &str, from: &str, to: &str) -> Why<Value> {
        // Counted before it is made.
        let found = text.matches(from).count();
        self.take(found, found.saturating_mul(to.len()))?;
        self.made(text.replace(from, to))
    }

    fn filter(&mut self, value: &Value, name: &str, arguments: &Arguments) -> Why<Value> {
        match name {
            "map" => {
                let attribute = match &arguments.named[..] {
                    [(name, attribute)] if name == "attribute" && arguments.list.is_empty() => {
                        attribute
                    }
                    _ => return Err("map is known with an attribute alone".into()),
                };
                let attribute = self.value(attribute)?;
                let values = self.list(value)?;
                let values: Why<Vec<Value>> = values
                    .iter()
                    .map(|value| self.item(value, &attribute))
                    .collect();
                return Ok(Value::List(values?.into()));
            }
            "selectattr" | "rejectattr" => {
                let wanted = name == "selectattr";
                let arguments = self.plain(arguments)?;
                let [attribute, how @ ..] = &arguments[..] else {
                    return Err(format!("{name} takes the name of an attribute"));
                };
                let mut kept = Vec::new();
                for value in self.list(value)?.iter() {
                    let own = self.item(value, attribute)?;
                    let is = match how {
                        [] => truth(&own),
                        [Value::Text(name), rest @ ..] => self.test(&own, name, rest)?,
                        _ => return Err(format!("{name} takes the name of a test")),
                    };
                    if is == wanted {
                        kept.push(value.clone());
                    }
                }
                return Ok(Value::List(kept.into()));
            }
            _ => {}
        }
        let arguments = self.plain(arguments)?;
        match (name, value, &arguments[..]) {
            ("default" | "d", Value::Undefined, [default, ..]) => Ok(default.clone()),
            ("default" | "d", value, [default, loosely]) if truth(loosely) && !truth(value) => {
                Ok(default.clone())
            }
            ("default" | "d", value, [_] | [_, _]) => Ok(value.clone()),
            ("trim", value, []) => {
                let text = self.text(value)?;
                self.made(text.trim().to_owned())
            }
            ("lower", value, []) => {
                let text = self.text(value)?;
                self.made(text.to_lowercase())
            }
            ("upper", value, []) => {
                let text = self.text(value)?;
                self.made(text.to_uppercase())
            }
            ("replace", Value::Text(text), [Value::Text(from), Value::Text(to)]) => {
                self.replaced(text, from, to)
            }
            ("string" | "safe", value, []) => {
                let text = self.text(value)?;
                Ok(Value::Text(text))
            }
            ("length" | "count", Value::Text(text), []) => {
                self.weigh(value)?;
                Ok(Value::Number(text.chars().count() as i64))
            }
            ("length" | "count", value, []) => Ok(Value::Number(self.list(value)?.len() as i64)),
            ("first", value, []) => Ok(self
                .list(value)?
                .first()
                .cloned()
                .unwrap_or(Value::Undefined)),
            ("last", value, []) => Ok(self
                .list(value)?
                .last()
                .cloned()
                .unwrap_or(Value::Undefined)),
            ("list", value, []) => Ok(Value::List(self.list(value)?)),
            ("join", value, by @ ([] | [Value::Text(_)])) => {
                let by: Rc<str> = match by {
                    [Value::Text(by)] => Rc::clone(by),
                    _ => "".into(),
                };
                let mut text = String::new();
                for (at, value) in self.list(value)?.iter().enumerate() {
                    let value = self.text(value)?;
                    self.take(1, by.len())?;
                    if at > 0 {
                        text.push_str(&by);
                    }
                    text.push_str(&value);
                }
                self.made(text)
            }
            (name, value, _) => Err(format!(
                "the filter {name} of {} is not known, or not with these arguments",
                kind(value)
            )),
        }
    }
}

/// What a loop knows of its turn.
fn place_of(place: usize, length: usize) -> Value {
    let number = |number: usize| Value::Number(number as i64);
    let entries = [
        ("index", number(place + 1)),
        ("index0", number(place)),
        ("revindex", number(length - place)),
        ("revindex0", number(length - place - 1)),
        ("length", number(length)),
        ("first", Value::Flag(place == 0)),
        ("last", Value::Flag(place + 1 == length)),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value));
    Value::Map(BTreeMap::from(entries).into())
}

/// Whether a value may stand in a list.
fn is_plain(value: &Value) -> bool {
    matches!(
        value,
        Value::Undefined | Value::None | Value::Flag(_) | Value::Number(_) | Value::Text(_)
    )
}

fn test(value: &Value, name: &str, arguments: &[Value]) -> Why<bool> {
    Ok(match (name, arguments) {
        ("defined", []) => *value != Value::Undefined,
        ("undefined", []) => *value == Value::Undefined,
        ("none", []) => *value == Value::None,
        ("true", []) => *value == Value::Flag(true),
        ("false", []) => *value == Value::Flag(false),
        ("boolean", []) => matches!(value, Value::Flag(_)),
        ("string", []) => matches!(value, Value::Text(_)),
        ("number" | "integer", []) => matches!(value, Value::Number(_)),
        ("mapping", []) => matches!(value, Value::Map(_)),
        ("iterable" | "sequence", []) => {
            matches!(value, Value::List(_) | Value::Text(_) | Value::Map(_))
        }
        ("eq" | "equalto" | "==", [other]) => value == other,
        ("ne" | "!=", [other]) => value != other,
        ("in", [Value::List(list)]) => list.contains(value),
        _ => {
            return Err(format!(
                "the test {name} is not known, or not with these arguments"
            ));
        }
    })
}

/// As Python takes a value for true.
fn truth(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::None | Value::Flag(false) => false,
        Value::Number(number) => *number != 0,
        Value::Text(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Map(map) => !map.is_empty(),
        Value::Flag(true) | Value::Namespace(_) => true,
    }
}

fn whole(value: &Value) -> Why<i64> {
    match value {
        Value::Number(number) => Ok(*number),
        other => Err(format!("{} is no whole number", kind(other))),
    }
}

fn order(left: &Value, right: &Value) -> Why<std::cmp::Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Ok(left.cmp(right)),
        _ => Err(format!("{} and {} have no order", kind(left), kind(right))),
    }
}

/// What a value is, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Undefined => "nothing",
        Value::None => "none",
        Value::Flag(_) => "a flag",
        Value::Number(_) => "a number",
        Value::Text(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        Value::Namespace(_) => "a namespace",
    }
}
