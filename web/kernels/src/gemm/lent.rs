//! Values that somebody else has. A page maps no files: there are none in it, and no code for them.

/// Whether there are any.
pub(super) const ANY: bool = cfg!(not(target_arch = "wasm32"));

#[cfg(target_arch = "wasm32")]
pub(super) use in_a_page::Lent;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use natively::Lent;

#[cfg(target_arch = "wasm32")]
mod in_a_page {
    #[derive(Debug)]
    pub(in super::super) enum Lent {}

    impl Lent {
        pub(in super::super) fn new(_: impl AsRef<[f32]> + Send + Sync + 'static) -> Option<Self> {
            None
        }
    }

    impl AsRef<[f32]> for Lent {
        fn as_ref(&self) -> &[f32] {
            match *self {}
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod natively {
    use std::fmt;

    pub(in super::super) struct Lent(Box<dyn AsRef<[f32]> + Send + Sync>);

    impl Lent {
        pub(in super::super) fn new(
            values: impl AsRef<[f32]> + Send + Sync + 'static,
        ) -> Option<Self> {
            Some(Self(Box::new(values)))
        }
    }

    impl fmt::Debug for Lent {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} values", self.as_ref().len())
        }
    }

    impl AsRef<[f32]> for Lent {
        fn as_ref(&self) -> &[f32] {
            self.0.as_ref().as_ref()
        }
    }
}
