//! The registers of each machine.

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use wasm::Wasm;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// Registers with the whole numbers that pixels need: bytes, pairs of words, sums.
///
/// Every method must be inlined into a function that is compiled for the machine. A closure is not: it is a function of
/// its own, compiled for the lowest level, and a call from there costs more than what it computes.
///
/// # Safety
///
/// For all methods: the processor has the instructions of the implementation; pointers are valid for what the method
/// says, in any alignment.
pub(crate) trait Simd {
    /// 16 bytes.
    type Bytes: Copy;
    /// `LANES` pairs of words of 16 bits, which are signed.
    type Pairs: Copy;
    /// Sums of `LANES` pairs, in whatever form the machine adds them.
    type Sums: Copy;
    /// Sums of `LANES` quads of bytes, in whatever form the machine adds them.
    type Quads: Copy;
    /// Whether weights of quads are bytes: see [`Groups`](crate::taps::Groups).
    const BYTES: bool;
    /// Sums of 32 bits at a time.
    const LANES: usize;

    /// Reads 16 bytes.
    unsafe fn load_bytes(from: *const u8) -> Self::Bytes;
    /// Writes 16 bytes.
    unsafe fn store_bytes(to: *mut u8, bytes: Self::Bytes);
    /// The bytes that a table names; 0 where it says 128.
    unsafe fn shuffle(bytes: Self::Bytes, table: Self::Bytes) -> Self::Bytes;
    /// The double words of both in turn: of their first halves, of their second halves.
    unsafe fn zip_dwords(a: Self::Bytes, b: Self::Bytes) -> [Self::Bytes; 2];

    /// Sums of pairs, which are 0.
    unsafe fn no_sums() -> Self::Sums;
    /// Sums of quads, which are 0.
    unsafe fn no_quads() -> Self::Quads;
    /// Adds to each sum the four products of its quad: reads `LANES` quads of bytes, and the weights of one quad.
    unsafe fn add_quads<const WIDE: bool>(
        sums: Self::Quads,
        from: *const u8,
        weights: *const i16,
    ) -> Self::Quads;
    /// The sums in two parts.
    unsafe fn total(sums: Self::Quads) -> Total<Self>;
    /// Reads one pair, for every lane.
    unsafe fn splat_pair(from: *const i16) -> Self::Pairs;
    /// Reads 16 bytes for every 4 lanes, `step` bytes apart, and shuffles each 16 by a table.
    unsafe fn shuffle_pairs(from: *const u8, step: usize, table: Self::Bytes) -> Self::Pairs;
    /// Pairs of the bytes of two rows, `4 * LANES` columns of each, in an order that [`Simd::store_columns`] undoes.
    unsafe fn zip_rows(a: *const u8, b: *const u8) -> [Self::Pairs; 4];
    /// Adds to each sum the two products of its pair.
    unsafe fn add_dot(sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums;
    /// Writes the bytes of `4 * LANES` sums, in the order of lanes.
    unsafe fn store_lanes(to: *mut u8, sums: [Total<Self>; 4], point: Point);
    /// The same in the order of [`Simd::zip_rows`].
    unsafe fn store_columns(to: *mut u8, sums: [Total<Self>; 4], point: Point);
}

/// Quads as pairs: each first byte with the third, and each second one with the fourth.
///
/// Takes a function that reads `LANES` quads as two registers of pairs.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
macro_rules! quads_as_pairs {
    ($load:path) => {
        type Quads = $crate::simd::Total<Self>;
        const BYTES: bool = false;

        #[inline(always)]
        unsafe fn no_quads() -> Self::Quads {
            // SAFETY: the caller's promise.
            unsafe { Self::Quads::zero() }
        }

        #[inline(always)]
        unsafe fn add_quads<const WIDE: bool>(
            mut sums: Self::Quads,
            from: *const u8,
            weights: *const i16,
        ) -> Self::Quads {
            // SAFETY: the caller's promise.
            unsafe {
                let [even, odd] = $load(from);
                sums.low = Self::add_dot(sums.low, even, Self::splat_pair(weights));
                sums.low = Self::add_dot(sums.low, odd, Self::splat_pair(weights.add(2)));
                if WIDE {
                    sums.high = Self::add_dot(sums.high, even, Self::splat_pair(weights.add(4)));
                    sums.high = Self::add_dot(sums.high, odd, Self::splat_pair(weights.add(6)));
                }
            }
            sums
        }

        #[inline(always)]
        unsafe fn total(sums: Self::Quads) -> $crate::simd::Total<Self> {
            sums
        }
    };
}
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
use quads_as_pairs;

/// A sum in two parts, `(high << SPLIT) + low`. All arithmetic is modulo 2^32, so it is exact where the whole fits.
pub(crate) struct Total<S: Simd + ?Sized> {
    pub(crate) low: S::Sums,
    pub(crate) high: S::Sums,
}

impl<S: Simd + ?Sized> Clone for Total<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Simd + ?Sized> Copy for Total<S> {}

impl<S: Simd> Total<S> {
    /// 0.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    pub(crate) unsafe fn zero() -> Self {
        // SAFETY: the caller's promise.
        let zero = unsafe { S::no_sums() };
        Self {
            low: zero,
            high: zero,
        }
    }
}

/// Bits of the lower part of a weight: see [`crate::taps`].
pub(crate) const SPLIT: u32 = 11;

/// How a sum becomes a byte: a half is added, it is shifted right, and ended at 0 and 255.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Bits behind the point, at least 1.
    pub(crate) bits: u32,
}

impl Point {
    /// A half.
    pub(crate) fn half(self) -> i32 {
        1 << (self.bits - 1)
    }

    /// The byte of a sum that a half was added to.
    #[inline(always)]
    pub(crate) fn byte(self, sum: i32) -> u8 {
        (sum >> self.bits).clamp(0, 255) as u8
    }
}

/// Calls a function that is generic over [`Simd`] for a set of instructions, compiled for it. Gives whether there was one:
/// the scalar set has none.
///
/// The function and what it calls must be `#[inline(always)]`, or they are compiled for the lowest level.
macro_rules! dispatch {
    ($set:expr, $name:ident::<$($generic:literal),*>($($arg:ident: $type:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn avx2($($arg: $type),*) {
            // SAFETY: the caller's promise.
            unsafe { $name::<$crate::simd::Avx2, $($generic),*>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
        unsafe fn avx512($($arg: $type),*) {
            // SAFETY: the caller's promise.
            unsafe { $name::<$crate::simd::Avx512, $($generic),*>($($arg),*) }
        }
        match $set {
            #[cfg(target_arch = "x86_64")]
            $crate::InstructionSet::Avx2 => {
                avx2($($arg),*);
                true
            }
            #[cfg(target_arch = "x86_64")]
            $crate::InstructionSet::Avx512 => {
                avx512($($arg),*);
                true
            }
            #[cfg(target_arch = "aarch64")]
            $crate::InstructionSet::Neon => {
                $name::<$crate::simd::Neon, $($generic),*>($($arg),*);
                true
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            $crate::InstructionSet::Simd128 => {
                $name::<$crate::simd::Wasm, $($generic),*>($($arg),*);
                true
            }
            _ => false,
        }
    }};
}
pub(crate) use dispatch;

/// Calls a function of plain Rust, compiled for a set of instructions: the compiler makes registers of its loops.
///
/// The function must be `#[inline(always)]`, or it is compiled for the lowest level.
macro_rules! compiled_for {
    ($set:expr, $name:ident$(::<$generic:literal>)?($($arg:ident: $type:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn avx2($($arg: $type),*) {
            $name$(::<$generic>)?($($arg),*)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
        fn avx512($($arg: $type),*) {
            $name$(::<$generic>)?($($arg),*)
        }
        match $set {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the set is here.
            $crate::InstructionSet::Avx2 => unsafe { avx2($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the set is here.
            $crate::InstructionSet::Avx512 => unsafe { avx512($($arg),*) },
            _ => $name$(::<$generic>)?($($arg),*),
        }
    }};
}
pub(crate) use compiled_for;
