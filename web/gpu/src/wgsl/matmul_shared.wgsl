// What products by vectors of four share: what they read, and what is done while a result is written. Where operands
// are f16 their product is exact in f32, and all sums are of f32.

@group(0) @binding(0) var<storage, read_write> out: array<OUT>;
@group(0) @binding(3) var<storage, read> x: array<X_ITEMS>;
@group(0) @binding(4) var<storage, read> w: array<STORED>;
@group(0) @binding(5) var<storage, read> residual: array<vec4<f32>>;

fn bias(column: u32) -> vec4<f32> {
  if (!HAS_BIAS) { return vec4<f32>(); }
  let at = BIAS + 4u * column;
  return vec4<f32>(constants[at], constants[at + 1u], constants[at + 2u], constants[at + 3u]);
}

fn finish(sum: vec4<f32>, row: u32, column: u32, rows: u32) {
  if (row >= rows || column >= N) { return; }
  let y = sum + bias(column);
  var z = vec4<f32>(activation(y.x), activation(y.y), activation(y.z), activation(y.w));
  if (HAS_RESIDUAL) { z += residual[row * N + column]; }
  out[row * N + column] = kept(z);
}
