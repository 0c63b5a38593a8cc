// out = activation(x · w + bias) + residual, for few rows. A group computes ROWS rows of COLUMN_THREADS columns of four:
// SLICES threads take the steps of a sum in turn, and what each of them has is added up in the group's memory.
//
// Lines that begin with @i are repeated for every row. K and N are counted in vectors of four.

var<workgroup> sums: array<vec4<f32>, SLICES * ROWS * COLUMN_THREADS>;

fn place(slice: u32, row: u32, column: u32) -> u32 {
  return (slice * ROWS + row) * COLUMN_THREADS + column;
}

@compute @workgroup_size(COLUMN_THREADS, SLICES)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_id) thread: vec3<u32>,
) {
  let rows = ROW_COUNT();
  let row = (group.y + group.z * groups.y) * ROWS;
  if (row >= rows) { return; }
  let column = group.x * COLUMN_THREADS + thread.x;
  let mine = min(column, N - 1u);
@i let x$i = min(row + $iu, rows - 1u) * K;
@i var sum$i = vec4<f32>();
  for (var k = thread.y; k < K; k += SLICES) {
    let at = 4u * k * N + mine;
    let w0 = V(weight(at));
    let w1 = V(weight(at + N));
    let w2 = V(weight(at + 2u * N));
    let w3 = V(weight(at + 3u * N));
@i  let a$i = V(x[x$i + k]);
@i  sum$i += a$i.x * w0;
@i  sum$i += a$i.y * w1;
@i  sum$i += a$i.z * w2;
@i  sum$i += a$i.w * w3;
  }
@i sums[place(thread.y, $iu, thread.x)] = sum$i;
  for (var left = SLICES / 2u; left > 0u; left /= 2u) {
    workgroupBarrier();
    if (thread.y < left) {
@i    sums[place(thread.y, $iu, thread.x)] += sums[place(thread.y + left, $iu, thread.x)];
    }
  }
  workgroupBarrier();
@i if (thread.y == $iu) { finish(sums[place(0u, $iu, thread.x)], row + $iu, column, rows); }
}
