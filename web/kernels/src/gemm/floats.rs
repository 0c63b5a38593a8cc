//! Values that come one after another.

use std::ops::Deref;

use super::buffer::Buffer;
use super::lent::{self, Lent};
use super::pages::Pages;

/// Values that come one after another and are then read: in huge pages where the system has them, because a large table takes ten
/// thousand pages of 4 KB, and the system hands out each by itself.
#[derive(Debug)]
pub struct Floats(Held);

#[derive(Debug)]
enum Held {
    Pages {
        room: Buffer,
        /// Those that have come.
        len: usize,
    },
    Own(Vec<f32>),
    Lent(Lent),
}

impl Floats {
    /// Whether [`lent`](Self::lent) gives any: whoever would have to look for values first need not.
    pub const CAN_BE_LENT: bool = lent::ANY;

    /// Those that somebody else has, a mapped file for example; none in a page, which maps no files.
    #[must_use]
    pub fn lent(values: impl AsRef<[f32]> + Send + Sync + 'static) -> Option<Self> {
        Lent::new(values).map(Held::Lent).map(Self)
    }

    /// None yet, and room for so many.
    #[must_use]
    pub fn with_room(values: usize) -> Self {
        Self(
            match Buffer::in_pages(values, &mut Pages::reserve(values)) {
                Some(room) => Held::Pages { room, len: 0 },
                None => Held::Own(Vec::with_capacity(values)),
            },
        )
    }

    /// Takes the next values, for which there has to be room. Values that are lent are copied.
    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = f32>) {
        if let Held::Lent(_) = self.0 {
            self.0 = Held::Own(self.to_vec());
        }
        match &mut self.0 {
            Held::Lent(_) => {}
            Held::Own(own) => own.extend(values),
            Held::Pages { room, len } => {
                let next = *len + values.len();
                let room = &mut room.as_mut_slice()[*len..next];
                for (to, value) in room.iter_mut().zip(values) {
                    *to = value;
                }
                *len = next;
            }
        }
    }
}

impl Deref for Floats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.0 {
            Held::Pages { room, len } => &room.as_slice()[..*len],
            Held::Own(own) => own,
            Held::Lent(values) => values.as_ref(),
        }
    }
}

impl From<&[f32]> for Floats {
    fn from(values: &[f32]) -> Self {
        Self(Held::Own(values.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_that_came_in_pages_and_without() {
        // More than a huge page, and less.
        for values in [700_000, 100] {
            let mut floats = Floats::with_room(values);
            assert!(floats.is_empty());
            floats.extend((0..7).map(|at| at as f32));
            assert_eq!(floats[..], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            floats.extend((7..values).map(|at| at as f32));
            let wanted: Vec<f32> = (0..values).map(|at| at as f32).collect();
            assert!(floats[..] == wanted[..]);
        }
        assert_eq!(Floats::from(&[1.5, -2.0][..])[..], [1.5, -2.0]);
    }

    #[test]
    fn values_that_are_lent_are_where_they_were() {
        let owner = std::sync::Arc::new(vec![1.5f32, -2.0]);
        let place = owner.as_ptr();
        struct Shared(std::sync::Arc<Vec<f32>>);
        impl AsRef<[f32]> for Shared {
            fn as_ref(&self) -> &[f32] {
                &self.0
            }
        }
        let mut lent = Floats::lent(Shared(owner)).unwrap();
        assert_eq!((lent.as_ptr(), &lent[..]), (place, &[1.5, -2.0][..]));
        assert_eq!(format!("{lent:?}"), "Floats(Lent(2 values))");
        lent.extend([3.0].into_iter());
        assert_eq!(lent[..], [1.5, -2.0, 3.0]);
    }
}
