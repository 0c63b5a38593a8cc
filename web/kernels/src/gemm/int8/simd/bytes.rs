//! What multiplies bytes: weights as they are stored, by activations as one byte or as two.

use std::marker::PhantomData;

use super::Int8Simd;

/// Instructions that add four products of bytes to each sum of 32 bits.
///
/// # Safety
///
/// As for [`Int8Simd`].
pub(in crate::gemm) trait Dots {
    /// The sums of `LANES` columns.
    type Sums: Copy;
    /// Four bytes for each column.
    type Bytes: Copy;
    /// Columns at a time.
    const LANES: usize;

    /// Sums of 0.
    unsafe fn no_sums() -> Self::Sums;
    /// Bytes of 0.
    unsafe fn no_bytes() -> Self::Bytes;
    /// Reads the bytes of all columns.
    unsafe fn load(from: *const i8) -> Self::Bytes;
    /// Reads four bytes, for every column.
    unsafe fn splat(from: *const i16) -> Self::Bytes;
    /// Adds the products of every column to its sum.
    unsafe fn add_dot(sums: Self::Sums, bytes: Self::Bytes, weights: Self::Bytes) -> Self::Sums;
    /// The sums of wide activations from those of their bytes, less what their offset added:
    /// `LANES` sums of weights are read for that.
    unsafe fn of_wide(high: Self::Sums, low: Self::Sums, weights: *const i32) -> Self::Sums;
    /// The sums of activations of eight bits; weights as before, if there is an offset.
    unsafe fn of_eight(sums: Self::Sums, weights: *const i32) -> Self::Sums;
    /// Writes or adds `f32(sum) * (row * column)`; see [`Int8Simd::store_scaled`].
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sums: Self::Sums,
        row: *const f32,
        columns: *const f32,
    );
}

/// Wide activations: high bytes and low ones are multiplied apart.
pub(in crate::gemm) struct Wide<D>(PhantomData<D>);

impl<D: Dots> Int8Simd for Wide<D> {
    /// Of high bytes and of low ones.
    type Sum = [D::Sums; 2];
    type Weights = D::Bytes;
    type Group = [D::Bytes; 2];
    const LANES: usize = D::LANES;
    const STEPS: usize = 4;
    const WORDS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self::Sum {
        // SAFETY: the caller's promise.
        unsafe { [D::no_sums(); 2] }
    }

    #[inline(always)]
    unsafe fn no_weights() -> D::Bytes {
        // SAFETY: the caller's promise.
        unsafe { D::no_bytes() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> D::Bytes {
        // SAFETY: the caller's promise.
        unsafe { D::load(from) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> Self::Group {
        // SAFETY: the caller's promise.
        unsafe { [D::splat(from), D::splat(from.add(2))] }
    }

    #[inline(always)]
    unsafe fn add_dot([high, low]: Self::Sum, by: Self::Group, weights: D::Bytes) -> Self::Sum {
        // SAFETY: the caller's promise.
        unsafe {
            [
                D::add_dot(high, by[0], weights),
                D::add_dot(low, by[1], weights),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        [high, low]: Self::Sum,
        row: *const f32,
        columns: *const f32,
        weights: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe { D::store_scaled(to, adds, D::of_wide(high, low, weights), row, columns) }
    }
}

/// Activations of eight bits.
pub(in crate::gemm) struct Eight<D>(PhantomData<D>);

impl<D: Dots> Int8Simd for Eight<D> {
    type Sum = D::Sums;
    type Weights = D::Bytes;
    type Group = D::Bytes;
    const LANES: usize = D::LANES;
    const STEPS: usize = 4;
    const WORDS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> D::Sums {
        // SAFETY: the caller's promise.
        unsafe { D::no_sums() }
    }

    #[inline(always)]
    unsafe fn no_weights() -> D::Bytes {
        // SAFETY: the caller's promise.
        unsafe { D::no_bytes() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> D::Bytes {
        // SAFETY: the caller's promise.
        unsafe { D::load(from) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> D::Bytes {
        // SAFETY: the caller's promise.
        unsafe { D::splat(from) }
    }

    #[inline(always)]
    unsafe fn add_dot(sums: D::Sums, bytes: D::Bytes, weights: D::Bytes) -> D::Sums {
        // SAFETY: the caller's promise.
        unsafe { D::add_dot(sums, bytes, weights) }
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sums: D::Sums,
        row: *const f32,
        columns: *const f32,
        weights: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe { D::store_scaled(to, adds, D::of_eight(sums, weights), row, columns) }
    }
}
