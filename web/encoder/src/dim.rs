//! Extents that depend on the length of a text.

/// `fixed + tokens · n`, where `n` is the number of tokens of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Dim {
    pub(crate) fixed: i64,
    pub(crate) tokens: i64,
}

/// As messages say it.
impl std::fmt::Debug for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some(fixed) => write!(f, "{fixed}"),
            None => write!(f, "{} + {} tokens", self.fixed, self.tokens),
        }
    }
}

impl Dim {
    /// One.
    pub(crate) const ONE: Self = Self::new(1);
    /// The number of tokens.
    pub(crate) const TOKENS: Self = Self {
        fixed: 0,
        tokens: 1,
    };

    pub(crate) const fn new(fixed: i64) -> Self {
        Self { fixed, tokens: 0 }
    }

    /// The number, where it does not depend on the text.
    pub(crate) fn known(self) -> Option<i64> {
        (self.tokens == 0).then_some(self.fixed)
    }

    /// The same, where it is an extent that memory can have on this target.
    pub(crate) fn extent(self) -> Option<usize> {
        self.known().and_then(|known| usize::try_from(known).ok())
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            fixed: self.fixed.checked_add(other.fixed)?,
            tokens: self.tokens.checked_add(other.tokens)?,
        })
    }

    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        Some(Self {
            fixed: self.fixed.checked_sub(other.fixed)?,
            tokens: self.tokens.checked_sub(other.tokens)?,
        })
    }

    /// `None` for the square of a number of tokens.
    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let (number, dim) = match (self.known(), other.known()) {
            (Some(number), _) => (number, other),
            (_, Some(number)) => (number, self),
            _ => return None,
        };
        Some(Self {
            fixed: dim.fixed.checked_mul(number)?,
            tokens: dim.tokens.checked_mul(number)?,
        })
    }

    /// Division without a remainder, whatever the number of tokens; `None` where there is one.
    pub(crate) fn divided_by(self, other: Self) -> Option<Self> {
        if let Some(number) = other.known() {
            let divides = |part: i64| number != 0 && part.checked_rem(number) == Some(0);
            return (divides(self.fixed) && divides(self.tokens)).then(|| Self {
                fixed: self.fixed / number,
                tokens: self.tokens / number,
            });
        }
        // `c · (a + b n) / (a + b n)`.
        let quotient = self.tokens.checked_div(other.tokens)?;
        (other.times(Self::new(quotient)) == Some(self)).then(|| Self::new(quotient))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_of_lengths() {
        let twelve = Dim::new(12);
        let many = Dim::TOKENS.times(twelve).unwrap();
        assert_eq!(
            many,
            Dim {
                fixed: 0,
                tokens: 12
            }
        );
        assert_eq!(many.divided_by(Dim::TOKENS), Some(twelve));
        assert_eq!(many.divided_by(twelve), Some(Dim::TOKENS));
        assert_eq!(many.divided_by(Dim::new(5)), None);
        assert_eq!(many.divided_by(Dim::new(0)), None);
        assert_eq!(many.times(Dim::TOKENS), None);
        let more = Dim::TOKENS.plus(Dim::ONE).unwrap();
        assert_eq!(more.minus(Dim::TOKENS), Some(Dim::ONE));
        assert_eq!(more.known(), None);
        assert_eq!(Dim::new(i64::MAX).plus(Dim::ONE), None);
    }
}
