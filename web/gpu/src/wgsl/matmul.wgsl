// out = activation(x · w + bias) + residual. A thread computes ROWS rows of four columns and reads
// both operands where they are: threads of a group share them through the cache, so that there is
// no barrier to wait at, which is what suits short batches and adapters that are processors.
//
// Lines that begin with @i are repeated for every row. K and N are counted in vectors of four.

@compute @workgroup_size(COLUMN_THREADS, ROW_THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_id) thread: vec3<u32>,
) {
  let rows = ROW_COUNT();
  let column = group.x * COLUMN_THREADS + thread.x;
  let row = ((group.y + group.z * groups.y) * ROW_THREADS + thread.y) * ROWS;
  if (column >= N || row >= rows) { return; }
@i let x$i = min(row + $iu, rows - 1u) * K;
@i var sum$i = vec4<f32>();
  for (var k = 0u; k < K; k++) {
    let at = 4u * k * N + column;
    let w0 = V(weight(at));
    let w1 = V(weight(at + N));
    let w2 = V(weight(at + 2u * N));
    let w3 = V(weight(at + 3u * N));
@i let a$i = V(x[x$i + k]);
@i sum$i += a$i.x * w0;
@i sum$i += a$i.y * w1;
@i sum$i += a$i.z * w2;
@i sum$i += a$i.w * w3;
  }
@i finish(sum$i, row + $iu, column, rows);
}
