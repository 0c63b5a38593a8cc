//! How the factors lie side by side for the instruction that multiplies them.

/// What a kernel's instruction takes at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// Two activations of 16 bits, and two weights.
    #[default]
    Pairs,
    /// Four high bytes of activations and their four low bytes, all unsigned, and four weights:
    /// an activation is `256 * high + low - 32768`.
    #[cfg(target_arch = "x86_64")]
    UnsignedBytes,
    /// The same with signed bytes: an activation is `256 * high + low + 128`.
    #[cfg(target_arch = "aarch64")]
    SignedBytes,
}

impl Form {
    /// Steps of k that lie side by side.
    pub(super) fn steps(self) -> usize {
        match self {
            Self::Pairs => 2,
            #[cfg(target_arch = "x86_64")]
            Self::UnsignedBytes => 4,
            #[cfg(target_arch = "aarch64")]
            Self::SignedBytes => 4,
        }
    }

    /// Puts a row of whole numbers into this form; their count is a multiple of the steps.
    #[inline(always)]
    pub(super) fn arrange(self, numbers: &mut [i16]) {
        match self {
            Self::Pairs => {
                let _ = numbers;
            }
            #[cfg(target_arch = "x86_64")]
            Self::UnsignedBytes => split(numbers, 0x8000_8000_8000_8000),
            #[cfg(target_arch = "aarch64")]
            Self::SignedBytes => split(numbers, 0x0080_0080_0080_0080),
        }
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

    #[test]
    fn a_number_is_made_of_its_bytes() {
        for number in i16::MIN..=i16::MAX {
            let group = [number, 0, -1, number.wrapping_add(7)];
            let mut split = group;
            #[cfg(target_arch = "x86_64")]
            let byte = {
                Form::UnsignedBytes.arrange(&mut split);
                |byte: u8| i32::from(byte)
            };
            #[cfg(target_arch = "aarch64")]
            let byte = {
                Form::SignedBytes.arrange(&mut split);
                |byte: u8| i32::from(byte as i8)
            };
            let offset = if cfg!(target_arch = "x86_64") {
                -32768
            } else {
                128
            };
            let bytes: Vec<u8> = split.iter().flat_map(|pair| pair.to_le_bytes()).collect();
            for (at, number) in group.into_iter().enumerate() {
                let made = 256 * byte(bytes[at]) + byte(bytes[at + 4]) + offset;
                assert_eq!(made, i32::from(number));
            }
        }
    }
}
