//! Operations on one pixel after the other.

use crate::{OptLevel, PixelsError, Result, Rows, threads};

/// Calls `job` with runs of pixels, as long as rows without gaps let them be, and the place of what is made of each: `made`
/// bytes for a pixel.
///
/// # Errors
/// [`PixelsError::Size`] where `to` has another length.
pub(crate) fn each(
    from: Rows<'_>,
    to: &mut [u8],
    made: usize,
    level: OptLevel,
    job: impl Fn(&[u8], &mut [u8]) + Sync,
) -> Result<()> {
    let row = from.width() * made;
    if row.checked_mul(from.height()) != Some(to.len()) {
        return Err(PixelsError::Size(format!(
            "{} x {} pixels make {made} bytes each, which do not fill {} bytes",
            from.width(),
            from.height(),
            to.len()
        )));
    }
    let old = from.width() * from.channels();
    let bytes = old * from.height() + to.len();
    threads::split(level.threads_for(bytes), to, row, |first, to| {
        if let Some(whole) = from.whole() {
            job(&whole[first * old..][..to.len() / row * old], to);
            return;
        }
        for (y, to) in (first..).zip(to.chunks_exact_mut(row)) {
            job(from.row(y), to);
        }
    });
    Ok(())
}
