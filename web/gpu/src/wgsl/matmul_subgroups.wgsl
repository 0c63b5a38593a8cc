// out = activation(x · w + bias) + residual. A group computes ROWS rows of four columns a thread; the threads of a
// subgroup read different steps of a row and tell one another, without memory of the group and its barriers. Sums run
// in the same order as everywhere.
//
// Lines that begin with @i are repeated for every row. K and N are counted in vectors of four.

@compute @workgroup_size(COLUMN_THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_id) thread: vec3<u32>,
  @builtin(subgroup_size) size: u32,
) {
  let rows = ROW_COUNT();
  let row = (group.y + group.z * groups.y) * ROWS;
  if (row >= rows) { return; }
  enter(size);
  // Threads beyond the last column help the others to read.
  let column = group.x * COLUMN_THREADS + thread.x;
  let mine = min(column, N - 1u);
@i let x$i = min(row + $iu, rows - 1u) * K;
@i var sum$i = vec4<f32>();
  for (var start = 0u; start < K; start += lanes) {
    let own = min(start + rank, K - 1u);
@i  let b$i = V(x[x$i + own]);
    var k = start;
    for (var place = 0u; place < places && k < K; place++) {
      if (!is_there(place)) { continue; }
      let at = 4u * k * N + mine;
      let w0 = V(weight(at));
      let w1 = V(weight(at + N));
      let w2 = V(weight(at + 2u * N));
      let w3 = V(weight(at + 3u * N));
@i    let a$i = subgroupShuffle(b$i, place);
@i    sum$i += a$i.x * w0;
@i    sum$i += a$i.y * w1;
@i    sum$i += a$i.z * w2;
@i    sum$i += a$i.w * w3;
      k++;
    }
  }
@i finish(sum$i, row + $iu, column, rows);
}
