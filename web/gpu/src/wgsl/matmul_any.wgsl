// out = activation(x · w + bias) + residual, a number for each thread: for extents that are no
// multiples of four.

@group(0) @binding(0) var<storage, read_write> out: array<OUT>;
@group(0) @binding(3) var<storage, read> x: array<X_ITEMS>;
@group(0) @binding(4) var<storage, read> w: array<STORED>;
@group(0) @binding(5) var<storage, read> residual: array<f32>;

@compute @workgroup_size(COLUMN_THREADS, ROW_THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_id) thread: vec3<u32>,
) {
  let column = group.x * COLUMN_THREADS + thread.x;
  let row = (group.y + group.z * groups.y) * ROW_THREADS + thread.y;
  if (column >= N || row >= ROW_COUNT()) { return; }
  var sum = 0.0f;
  for (var k = 0u; k < K; k++) {
    sum += f32(x[row * K + k]) * f32(w[k * N + column]);
  }
  if (HAS_BIAS) { sum += constants[BIAS + column]; }
  var y = activation(sum);
  if (HAS_RESIDUAL) { y += residual[row * N + column]; }
  out[row * N + column] = kept(y);
}
