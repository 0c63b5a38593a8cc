//! The windows of convolutions and pools.

use isovec_kernels::conv::{Map, Window, Windows};

use super::call::Call;
use crate::error::Why;

/// The windows that a node's attributes speak of, over a map, with a kernel of these extents.
///
/// # Errors
/// Attributes that say nothing sensible, or more than two axes.
pub(super) fn windows(call: &Call<'_>, map: Map, kernel: [usize; 2]) -> Why<Windows> {
    let pair = |name: &str| -> Why<[usize; 2]> {
        let Some(ints) = call.node.ints(name) else {
            return Ok([1, 1]);
        };
        match *ints {
            [a, b] if a > 0 && b > 0 && a < 1 << 16 && b < 1 << 16 => Ok([a as usize, b as usize]),
            _ => Err(format!("{name} {ints:?}").into()),
        }
    };
    let (stride, dilation) = (pair("strides")?, pair("dilations")?);
    let extents = [map.height, map.width];
    let spans: [usize; 2] = std::array::from_fn(|axis| (kernel[axis] - 1) * dilation[axis] + 1);
    let (mut before, mut after) = ([0; 2], [0; 2]);
    match call.node.text("auto_pad").unwrap_or("NOTSET") {
        "NOTSET" | "" => {
            let pads = call.node.ints("pads").unwrap_or(&[0; 4]);
            let own: Option<Vec<usize>> =
                pads.iter().map(|&pad| usize::try_from(pad).ok()).collect();
            match own.as_deref() {
                Some(&[top, left, bottom, right]) if pads.iter().all(|&pad| pad < 1 << 16) => {
                    (before, after) = ([top, left], [bottom, right]);
                }
                _ => return Err(format!("pads {pads:?}").into()),
            }
        }
        "VALID" => {}
        same @ ("SAME_UPPER" | "SAME_LOWER") => {
            for axis in 0..2 {
                let places = extents[axis].div_ceil(stride[axis]);
                let all = ((places - 1) * stride[axis] + spans[axis]).saturating_sub(extents[axis]);
                let (less, more) = (all / 2, all - all / 2);
                (before[axis], after[axis]) = match same {
                    "SAME_UPPER" => (less, more),
                    _ => (more, less),
                };
            }
        }
        other => return Err(format!("auto_pad {other:?}").into()),
    }
    let mut places = [0; 2];
    for axis in 0..2 {
        let all = extents[axis] + before[axis] + after[axis];
        let room = all
            .checked_sub(spans[axis])
            .ok_or("its kernel is larger than its map")?;
        places[axis] = room / stride[axis] + 1;
        if call.node.int("ceil_mode").unwrap_or(0) != 0 {
            places[axis] = room.div_ceil(stride[axis]) + 1;
            // No window starts beyond the map and what is before it.
            if (places[axis] - 1) * stride[axis] >= extents[axis] + before[axis] {
                places[axis] -= 1;
            }
        }
    }
    Ok(Windows {
        map,
        window: Window {
            kernel,
            stride,
            dilation,
            before,
        },
        places,
    })
}

/// The extents of a kernel, which are positive.
///
/// # Errors
/// If they are not two such numbers.
pub(super) fn kernel(extents: &[i64]) -> Why<[usize; 2]> {
    match *extents {
        [a, b] if a > 0 && b > 0 && a < 1 << 16 && b < 1 << 16 => Ok([a as usize, b as usize]),
        _ => Err(format!("a kernel of {extents:?}: it has not two axes").into()),
    }
}
