// out = activation(x · w + bias) + residual, by tiles that a group of threads copies to its own
// memory: what suits GPUs, whose threads compute faster than their memory delivers. A group computes
// ROW_THREADS · ROWS rows of COLUMN_THREADS · COLUMNS columns of four; DEPTH vectors of k at a time.
//
// Lines that begin with @i are repeated for every row, with @j for every column, with @ij for both.

const THREADS: u32 = COLUMN_THREADS * ROW_THREADS;
const TILE_ROWS: u32 = ROW_THREADS * ROWS;
const TILE_COLUMNS: u32 = COLUMN_THREADS * COLUMNS;

var<workgroup> tile_x: array<X_ITEMS, TILE_ROWS * DEPTH>;
var<workgroup> tile_w: array<W_ITEMS, 4 * DEPTH * TILE_COLUMNS>;

@compute @workgroup_size(COLUMN_THREADS, ROW_THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_id) thread: vec3<u32>,
  @builtin(local_invocation_index) index: u32,
) {
  let rows = ROW_COUNT();
  let first_column = group.x * TILE_COLUMNS;
  let first_row = (group.y + group.z * groups.y) * TILE_ROWS;
  if (first_row >= rows) { return; }
@ij var sum$i_$j = vec4<f32>();
  for (var start = 0u; start < K; start += DEPTH) {
    for (var at = index; at < TILE_ROWS * DEPTH; at += THREADS) {
      let row = min(first_row + at / DEPTH, rows - 1u);
      let k = start + at % DEPTH;
      tile_x[at] = select(X_ITEMS(), x[row * K + min(k, K - 1u)], k < K);
    }
    for (var at = index; at < 4u * DEPTH * TILE_COLUMNS; at += THREADS) {
      let step = 4u * start + at / TILE_COLUMNS;
      let column = min(first_column + at % TILE_COLUMNS, N - 1u);
      tile_w[at] = weight(min(step, 4u * K - 1u) * N + column);
    }
    workgroupBarrier();
    for (var k = 0u; k < DEPTH; k++) {
@i   let a$i = V(tile_x[(thread.y + $iu * ROW_THREADS) * DEPTH + k]);
@j   let p$j = V(tile_w[(4u * k) * TILE_COLUMNS + thread.x + $ju * COLUMN_THREADS]);
@ij  sum$i_$j += a$i.x * p$j;
@j   let q$j = V(tile_w[(4u * k + 1u) * TILE_COLUMNS + thread.x + $ju * COLUMN_THREADS]);
@ij  sum$i_$j += a$i.y * q$j;
@j   let r$j = V(tile_w[(4u * k + 2u) * TILE_COLUMNS + thread.x + $ju * COLUMN_THREADS]);
@ij  sum$i_$j += a$i.z * r$j;
@j   let s$j = V(tile_w[(4u * k + 3u) * TILE_COLUMNS + thread.x + $ju * COLUMN_THREADS]);
@ij  sum$i_$j += a$i.w * s$j;
    }
    workgroupBarrier();
  }
@ij finish(sum$i_$j, first_row + thread.y + $iu * ROW_THREADS, first_column + thread.x + $ju * COLUMN_THREADS, rows);
}
