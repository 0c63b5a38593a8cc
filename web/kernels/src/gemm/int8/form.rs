//! How the factors lie side by side for the instruction that multiplies them.

/// Values of a row with a scale of their own, with [`ActivationBits::Eight`].
pub(super) const GROUP: usize = 128;

/// How many bits activations are quantised to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ActivationBits {
    /// As many as cannot overflow a sum of 32 bits, 13 to 16, with a scale for each row. Their
    /// error disappears beside that of the weights.
    #[default]
    Wide,
    /// 8, with a scale for every 128 values of a row: half the products, where the processor
    /// multiplies bytes, and a larger error.
    Eight,
}

/// What a kernel's instruction takes at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) bits: ActivationBits,
    pub(super) layout: Layout,
}

/// How the values of a group lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Layout {
    /// Two activations of 16 bits, and two weights.
    #[default]
    Pairs,
    /// Bytes of four activations, unsigned, and four weights. Of wide activations the four high
    /// bytes come first, then the four low ones: an activation is `256 * high + low - 32768`. One
    /// of eight bits is `byte - 128`.
    #[cfg(target_arch = "x86_64")]
    UnsignedBytes,
    /// The same with signed bytes: a wide activation is `256 * high + low + 128`, one of eight bits
    /// its byte.
    #[cfg(target_arch = "aarch64")]
    SignedBytes,
}

impl Form {
    /// Steps of k that lie side by side.
    pub(super) fn steps(self) -> usize {
        match self.layout {
            Layout::Pairs => 2,
            #[cfg(target_arch = "x86_64")]
            Layout::UnsignedBytes => 4,
            #[cfg(target_arch = "aarch64")]
            Layout::SignedBytes => 4,
        }
    }

    /// The 16-bit words that `k` activations take.
    pub(super) fn words(self, k: usize) -> usize {
        let padded = k.next_multiple_of(self.steps());
        match self {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self {
                bits: ActivationBits::Eight,
                layout,
            } if layout != Layout::Pairs => padded / 2,
            _ => padded,
        }
    }

    /// The activations of a row that share a scale.
    pub(super) fn group(self, k: usize) -> usize {
        match self.bits {
            ActivationBits::Wide => k.max(1),
            ActivationBits::Eight => GROUP,
        }
    }

    /// The groups of a row; a row of nothing has one, too.
    pub(super) fn groups(self, k: usize) -> usize {
        k.div_ceil(self.group(k)).max(1)
    }

    /// Whether kernels need the sums of the weights: to take off what an offset of the activations
    /// adds.
    pub(super) fn has_offset(self) -> bool {
        match self.layout {
            Layout::Pairs => false,
            #[cfg(target_arch = "x86_64")]
            Layout::UnsignedBytes => true,
            #[cfg(target_arch = "aarch64")]
            Layout::SignedBytes => self.bits == ActivationBits::Wide,
        }
    }

    /// Puts a row of wide whole numbers into this form; their count is a multiple of the steps.
    #[inline(always)]
    pub(super) fn arrange_wide(self, numbers: &mut [i16]) {
        match self.layout {
            Layout::Pairs => {
                let _ = numbers;
            }
            #[cfg(target_arch = "x86_64")]
            Layout::UnsignedBytes => split(numbers, 0x8000_8000_8000_8000),
            #[cfg(target_arch = "aarch64")]
            Layout::SignedBytes => split(numbers, 0x0080_0080_0080_0080),
        }
    }

    /// Puts whole numbers of eight bits into this form; they fill the words that they are put to.
    #[inline(always)]
    pub(super) fn arrange_eight(self, numbers: &[i16], to: &mut [i16]) {
        match self.layout {
            Layout::Pairs => to.copy_from_slice(numbers),
            #[cfg(target_arch = "x86_64")]
            Layout::UnsignedBytes => join(numbers, 0x80, to),
            #[cfg(target_arch = "aarch64")]
            Layout::SignedBytes => join(numbers, 0, to),
        }
    }
}

/// Puts the low bytes of two numbers into each word, after turning the bits of `flip` in them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn join(numbers: &[i16], flip: u8, to: &mut [i16]) {
    let (pairs, _) = numbers.as_chunks::<2>();
    for (word, pair) in to.iter_mut().zip(pairs) {
        *word = i16::from_le_bytes(pair.map(|number| number as u8 ^ flip));
    }
}

/// Puts four numbers' high bytes before their low bytes, four numbers at a time, after turning the
/// bits of `flip` in them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn split(numbers: &mut [i16], flip: u64) {
    /// The lowest bytes of four words, side by side.
    #[inline(always)]
    fn low_bytes(words: u64) -> u64 {
        let bytes = words & 0x00ff_00ff_00ff_00ff;
        let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
        (pairs | pairs >> 16) & 0xffff_ffff
    }
    let (groups, _) = numbers.as_chunks_mut::<4>();
    for group in groups {
        let word = |at: usize| u64::from(group[at] as u16) << (16 * at);
        let words = (word(0) | word(1) | word(2) | word(3)) ^ flip;
        let bytes = low_bytes(words >> 8) | low_bytes(words) << 32;
        *group = std::array::from_fn(|at| (bytes >> (16 * at)) as i16);
    }
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    const LAYOUT: Layout = Layout::UnsignedBytes;
    #[cfg(target_arch = "aarch64")]
    const LAYOUT: Layout = Layout::SignedBytes;

    /// The bytes as the instruction takes them.
    fn bytes(words: &[i16]) -> Vec<i32> {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let number = |byte: u8| match LAYOUT {
            #[cfg(target_arch = "aarch64")]
            Layout::SignedBytes => i32::from(byte as i8),
            _ => i32::from(byte),
        };
        bytes.map(number).collect()
    }

    #[test]
    fn a_wide_number_is_made_of_its_bytes() {
        let form = Form {
            bits: ActivationBits::Wide,
            layout: LAYOUT,
        };
        let offset = if cfg!(target_arch = "x86_64") {
            -32768
        } else {
            128
        };
        for number in i16::MIN..=i16::MAX {
            let group = [number, 0, -1, number.wrapping_add(7)];
            let mut split = group;
            form.arrange_wide(&mut split);
            let bytes = bytes(&split);
            for (at, number) in group.into_iter().enumerate() {
                assert_eq!(256 * bytes[at] + bytes[at + 4] + offset, i32::from(number));
            }
        }
    }

    #[test]
    fn a_number_of_eight_bits_is_a_byte() {
        let form = Form {
            bits: ActivationBits::Eight,
            layout: LAYOUT,
        };
        let offset = if form.has_offset() { -128 } else { 0 };
        let numbers: Vec<i16> = (-128..128).collect();
        let mut words = vec![0; form.words(numbers.len())];
        form.arrange_eight(&numbers, &mut words);
        let back: Vec<i32> = bytes(&words).iter().map(|byte| byte + offset).collect();
        assert_eq!(back, (-128..128).collect::<Vec<i32>>());
    }
}
