//! A node's attributes by name. An attribute of another type than is asked for has that type's default, as protobuf has it.

use super::proto::{AttributeProto, NodeProto, TensorProto};

impl NodeProto {
    /// The attribute of a name.
    pub fn attribute_named(&self, name: &str) -> Option<&AttributeProto> {
        self.attribute
            .iter()
            .find(|attribute| attribute.name == name)
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute_named(name).map(|attribute| attribute.i)
    }

    /// A float.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute_named(name).map(|attribute| attribute.f)
    }

    /// Whole numbers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute_named(name).map(|attribute| &*attribute.ints)
    }

    /// A text; nothing where it is no UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attribute_named(name)
            .and_then(|attribute| std::str::from_utf8(&attribute.s).ok())
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.attribute_named(name)
            .and_then(|attribute| attribute.t.as_ref())
    }
}

/// The axis of so many that an attribute means, which may be counted from the end; else what was asked for, in words.
///
/// # Errors
/// Where there is no such axis.
pub fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let counted = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(counted)
        .ok()
        .filter(|&counted| counted < rank)
        .ok_or_else(|| format!("axis {axis} of {rank}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_name_and_type() {
        let attribute = |name: &str| AttributeProto {
            name: name.into(),
            i: 7,
            f: 0.5,
            ints: vec![1, 2],
            s: b"same".to_vec(),
            t: Some(TensorProto::default()),
            ..AttributeProto::default()
        };
        let mut node = NodeProto {
            attribute: vec![attribute("other"), attribute("it")],
            ..NodeProto::default()
        };
        node.attribute[0].i = 3;
        assert_eq!((node.int("it"), node.int("none")), (Some(7), None));
        assert_eq!(node.float("it"), Some(0.5));
        assert_eq!(node.ints("it"), Some(&[1, 2][..]));
        assert_eq!((node.text("it"), node.text("none")), (Some("same"), None));
        assert!(node.tensor("it").is_some());
        node.attribute[1].s = vec![0xff];
        node.attribute[1].t = None;
        assert_eq!((node.text("it"), node.tensor("it")), (None, None));
    }

    #[test]
    fn axes_are_counted_from_both_ends() {
        assert_eq!(
            [axis(0, 3), axis(2, 3), axis(-1, 3), axis(-3, 3)],
            [Ok(0), Ok(2), Ok(2), Ok(0)]
        );
        for wrong in [axis(3, 3), axis(-4, 3), axis(0, 0), axis(i64::MIN, 3)] {
            assert!(wrong.is_err(), "{wrong:?}");
        }
    }
}
