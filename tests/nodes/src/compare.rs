//! Comparing as the ONNX project's own test runner does (`onnx/backend/test/runner`): shapes and
//! element types are equal, and numbers are close as NumPy's `assert_allclose` has it.

use crate::values::Numbers;

/// Relative to the wanted number.
pub const RTOL: f64 = 1e-3;

/// Absolute.
pub const ATOL: f64 = 1e-7;

/// Whether the numbers are those that are wanted.
///
/// # Errors
/// What differs, with the particulars in brackets.
pub fn compare(found: &Numbers, wanted: &Numbers) -> Result<(), String> {
    if found.shape != wanted.shape {
        return Err(format!(
            "another shape ({:?} for {:?})",
            found.shape, wanted.shape
        ));
    }
    if found.data_type != wanted.data_type {
        return Err(format!(
            "another element type ({:?} for {:?})",
            found.data_type, wanted.data_type
        ));
    }
    let pairs = found.values.iter().zip(&wanted.values);
    let mut places = pairs.enumerate().filter(|(_, (f, w))| !close(**f, **w));
    let Some((at, (found_value, wanted_value))) = places.next() else {
        return Ok(());
    };
    let more = places.count();
    Err(format!(
        "numbers beyond the tolerance (element {at} of {:?} is {found_value:.6e} for {wanted_value:.6e}, and \
         {more} others differ)",
        found.shape
    ))
}

/// A NaN is equal to a NaN, an infinity to the same infinity.
fn close(found: f64, wanted: f64) -> bool {
    if found.is_nan() || wanted.is_nan() {
        return found.is_nan() && wanted.is_nan();
    }
    if found.is_infinite() || wanted.is_infinite() {
        return found == wanted;
    }
    (found - wanted).abs() <= ATOL + RTOL * wanted.abs()
}

#[cfg(test)]
mod tests {
    use isovec_engine::onnx::proto::DataType;

    use super::*;

    fn numbers(data_type: DataType, shape: &[usize], values: &[f64]) -> Numbers {
        Numbers {
            data_type,
            shape: shape.to_vec(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn the_tolerance_is_that_of_the_onnx_project() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for (found, wanted) in [
            (1.0, 1.0),
            (1.000_9, 1.0),
            (9e-8, 0.0),
            (nan, nan),
            (inf, inf),
        ] {
            assert!(close(found, wanted), "{found} for {wanted}");
        }
        for (found, wanted) in [
            (1.001_1, 1.0),
            (1.1e-7, 0.0),
            (nan, 0.0),
            (0.0, nan),
            (inf, -inf),
            (1e30, inf),
            (inf, 1e30),
        ] {
            assert!(!close(found, wanted), "{found} for {wanted}");
        }
    }

    #[test]
    fn shapes_and_types_are_compared_too() {
        let one = numbers(DataType::Float, &[1], &[1.0]);
        assert_eq!(compare(&one, &one), Ok(()));
        for other in [
            numbers(DataType::Float, &[], &[1.0]),
            numbers(DataType::Float, &[1, 1], &[1.0]),
            numbers(DataType::Double, &[1], &[1.0]),
            numbers(DataType::Float, &[1], &[1.01]),
        ] {
            assert!(compare(&other, &one).is_err(), "{other:?}");
        }
    }
}
