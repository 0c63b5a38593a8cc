// Functions of one or two numbers, to the same bounds as those of the processor
// (web/kernels/src/math.rs): WGSL's own tanh may be off by 2^-11, and it has no erf. What is no number stays none: WGSL's
// min, max and clamp may make a number of it, and a vector that nobody knows to be wrong.

fn flag(truth: bool) -> f32 { return select(0.0f, 1.0f, truth); }

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn larger(a: f32, b: f32) -> f32 { return select(max(a, b), a + b, is_nan(a) || is_nan(b)); }

fn smaller(a: f32, b: f32) -> f32 { return select(min(a, b), a + b, is_nan(a) || is_nan(b)); }

fn between(x: f32, least: f32, most: f32) -> f32 { return select(min(max(x, least), most), x, is_nan(x)); }

// An odd rational function of degree 11 over 10.
fn erf(value: f32) -> f32 {
  let x = between(value, -3.92f, 3.92f);
  let t = x * x;
  var p = 2.0504144e-6f;
  p = p * t + 0.0002848313f;
  p = p * t + 0.0037635334f;
  p = p * t + 0.052742388f;
  p = p * t + 0.19035847f;
  p = p * t + 1.1283792f;
  var q = 3.8092374e-5f;
  q = q * t + 0.0011620192f;
  q = q * t + 0.014965091f;
  q = q * t + 0.114089265f;
  q = q * t + 0.5020336f;
  q = q * t + 1.0f;
  return between(x * p / q, -1.0f, 1.0f);
}

// An odd rational function of degree 9 over 8.
fn hyperbolic_tangent(value: f32) -> f32 {
  let x = between(value, -9.02f, 9.02f);
  let t = x * x;
  var p = 1.3318888e-8f;
  p = p * t + 2.058334e-5f;
  p = p * t + 0.0034940257f;
  p = p * t + 0.13379711f;
  p = p * t + 1.0f;
  var q = 7.7619416e-7f;
  q = q * t + 0.00032830783f;
  q = q * t + 0.025871038f;
  q = q * t + 0.46713024f;
  q = q * t + 1.0f;
  return between(x * p / q, -1.0f, 1.0f);
}

// Of the negative magnitude alone, so that nothing overflows.
fn sigmoid(x: f32) -> f32 {
  let e = exp(-abs(x));
  return select(e, 1.0f, x >= 0.0f) / (1.0f + e);
}

fn swish(x: f32, slope: f32) -> f32 { return x * sigmoid(slope * x); }

fn gelu(x: f32) -> f32 { return 0.5f * x * (1.0f + erf(x * 0.70710678f)); }

// x/2 (1 + tanh(z)) is x sigmoid(2 z).
fn gelu_tanh(x: f32) -> f32 { return x * sigmoid(1.595769f * x + 0.071354816f * x * x * x); }

// A polynomial between -tan(π/8) and tan(π/8), to which everything is brought: that of Cephes' atanf.
fn arctangent(value: f32) -> f32 {
  let size = abs(value);
  var x = size;
  var sum = 0.0f;
  if (size > 2.4142135f) {
    sum = 1.5707964f;
    x = -1.0f / size;
  } else if (size > 0.41421357f) {
    sum = 0.7853982f;
    x = (size - 1.0f) / (size + 1.0f);
  }
  let z = x * x;
  let p = ((0.080537446f * z - 0.13877685f) * z + 0.19977711f) * z - 0.33332950f;
  sum += p * z * x + x;
  return select(sum, -sum, value < 0.0f);
}

// By the half of the angle, whose tangent is exact at both ends.
fn arccosine(x: f32) -> f32 { return 2.0f * arctangent(sqrt((1.0f - x) / (1.0f + x))); }

fn arcsine(x: f32) -> f32 { return arctangent(x / sqrt((1.0f - x) * (1.0f + x))); }

fn square(x: f32) -> f32 { return x * x; }

fn relu(x: f32) -> f32 { return select(max(x, 0.0f), x, is_nan(x)); }

// WGSL's pow is for positive numbers alone. `nan` is what a root of a negative number is.
fn power(x: f32, exponent: f32, nan: f32) -> f32 {
  let size = pow(abs(x), exponent);
  if (x > 0.0f || exponent == 0.0f) { return select(size, 1.0f, exponent == 0.0f); }
  if (exponent != trunc(exponent)) { return select(nan, size, x == 0.0f); }
  let odd = abs(exponent) % 2.0f == 1.0f;
  return select(size, -size, odd);
}

// What a division leaves, with the sign of the divisor.
fn modulo(a: f32, b: f32) -> f32 {
  let rest = a % b;
  let turned = rest != 0.0f && (rest < 0.0f) != (b < 0.0f);
  return select(rest, rest + b, turned);
}
