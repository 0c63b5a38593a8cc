//! Bytes that become 0 or 255.

use crate::simd::compiled_for;
use crate::{OptLevel, Result, Rows, runs};

/// Makes 255 of each byte above a limit, and 0 of all others, in every channel.
///
/// # Errors
/// [`crate::PixelsError::Size`] where `to` has not a byte for each.
pub fn threshold(from: Rows<'_>, limit: u8, to: &mut [u8], level: OptLevel) -> Result<()> {
    let set = level.instructions();
    runs::each(from, to, from.channels(), level, |from, to| {
        compiled_for!(set, run(from: &[u8], limit: u8, to: &mut [u8]));
    })
}

#[inline(always)]
fn run(from: &[u8], limit: u8, to: &mut [u8]) {
    for (to, &byte) in to.iter_mut().zip(from) {
        *to = if byte > limit { 255 } else { 0 };
    }
}
