//! The places of an operand's columns, along the columns of a result.

use isovec_encoder::program::Operand;

/// The column of an operand for column `c` of a result with these extents.
pub(super) fn column(operand: &Operand, extents: &[usize]) -> String {
    // Neighbouring axes that are walked as one.
    let mut axes: Vec<(usize, usize)> = Vec::new();
    for (&extent, &stride) in extents.iter().zip(&operand.strides) {
        if extent == 1 {
            continue;
        }
        match axes.last_mut() {
            Some((outer, along)) if *along == stride * extent => {
                (*outer, *along) = (*outer * extent, stride);
            }
            _ => axes.push((extent, stride)),
        }
    }
    let mut terms = vec![format!("{}u", operand.offset)];
    let mut inner = 1;
    for (place, &(extent, stride)) in axes.iter().enumerate().rev() {
        let mut index = match inner {
            1 => "c".to_owned(),
            _ => format!("c / {inner}u"),
        };
        if place > 0 {
            index = format!("{index} % {extent}u");
        }
        match stride {
            0 => {}
            1 => terms.push(format!("({index})")),
            _ => terms.push(format!("({index}) * {stride}u")),
        }
        inner *= extent;
    }
    terms.join(" + ")
}

#[cfg(test)]
mod tests {
    use isovec_encoder::program::{NodeId, Source};

    use super::*;

    fn walked(offset: usize, strides: &[usize], extents: &[usize]) -> String {
        let operand = Operand {
            source: Source::Node(NodeId(0)),
            offset,
            strides: strides.to_vec(),
        };
        column(&operand, extents)
    }

    #[test]
    fn columns_are_walked_by_their_strides() {
        assert_eq!(walked(0, &[6, 2, 1], &[4, 3, 2]), "0u + (c)");
        assert_eq!(walked(5, &[0, 0], &[4, 3]), "5u");
        assert_eq!(walked(0, &[1, 4], &[4, 3]), "0u + (c % 3u) * 4u + (c / 3u)");
        assert_eq!(walked(2, &[8, 1], &[2, 4]), "2u + (c % 4u) + (c / 4u) * 8u");
    }
}
