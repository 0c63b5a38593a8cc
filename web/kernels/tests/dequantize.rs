//! Stored weights, every value of them.

use isovec_kernels::{bf16_to_f32, dequantize_columns, dequantize_rows, f16_to_f32};

fn all_bytes() -> Vec<u8> {
    (0..=u16::MAX).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn every_binary16_is_exact() {
    let mut out = vec![0.0; 1 << 16];
    f16_to_f32(&all_bytes(), &mut out);
    for (bits, &got) in out.iter().enumerate() {
        // IEEE 754-2019, section 3.4.
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f32);
        let exact = match exponent {
            0 => fraction * libm::exp2f(-24.0),
            31 if fraction == 0.0 => f32::INFINITY,
            31 => f32::NAN,
            _ => (1024.0 + fraction) * libm::exp2f((exponent - 25) as f32),
        };
        if exact.is_nan() {
            assert!(got.is_nan(), "{bits:04x}: {got}");
        } else {
            assert_eq!(got.to_bits(), (sign * exact).to_bits(), "{bits:04x}");
        }
    }
}

#[test]
fn every_bfloat16_is_the_upper_half_of_an_f32() {
    let mut out = vec![0.0; 1 << 16];
    bf16_to_f32(&all_bytes(), &mut out);
    for (bits, got) in out.iter().enumerate() {
        assert_eq!(got.to_bits(), (bits as u32) << 16);
    }
}

#[test]
fn scales_belong_to_rows_or_columns() {
    let values = [-128, -1, 0, 1, 2, 127];
    let mut out = [0.0; 6];
    dequantize_rows(&values, &[0.5, 2.0], &mut out);
    assert_eq!(out, [-64.0, -0.5, 0.0, 2.0, 4.0, 254.0]);
    dequantize_columns(&values, &[0.5, 2.0, 4.0], &mut out);
    assert_eq!(out, [-64.0, -2.0, 0.0, 0.5, 4.0, 508.0]);
    dequantize_rows(&[], &[], &mut []);
    dequantize_columns(&[], &[], &mut []);
}
