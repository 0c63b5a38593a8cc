//! What the GPU engine alone is told.

/// What the GPU engine is told beside what every engine is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Use an adapter that is a processor playing a GPU, which is slower than the processor itself.
    pub software_adapter: bool,
    /// Of two adapters, take the one that uses less power.
    pub low_power: bool,
    /// Hold weights, and what products and attention read, as 16-bit floats, where the adapter has
    /// `shader-f16`; sums stay 32-bit. `None`: false.
    pub f16: Option<bool>,
    /// Where 16-bit floats were asked for and do not work, refuse the model instead of computing in 32 bits.
    pub strict: bool,
}
