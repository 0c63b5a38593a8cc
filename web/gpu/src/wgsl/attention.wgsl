// For each head and query: the values' mean, weighted by the softmax of scale · query · key + terms + bias.
// A thread keeps one query, the largest score so far, and the sums of exponentials and of values
// relative to it (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), so that
// no score is ever stored. Neighbouring threads have neighbouring queries of the same head and read
// the same keys at the same time.
//
// Lines that begin with @i are repeated for every V of a head's columns: where an array's indices are written out, it
// lies in registers, and in memory where a loop counts them, which GPUs take several times as long for.
//
// V is a vector of four or, where a head's columns are no multiple of four, one number; SIZE, strides
// and offsets are counted in V. D, which queries and terms are of, is V here. Whatever the buffers hold, all sums are of f32.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_id) thread: vec3<u32>,
) {
  let token = (group.x + group.z * groups.x) * THREADS + thread.x;
  let head = group.y;
  if (token >= tokens()) { return; }
  let seen = seen_by(token);
  var query: array<D, SIZE>;
  var sums: array<V, SIZE>;
  let at_query = token * Q_STRIDE + Q_OFFSET + head * Q_HEAD;
@i query[$i] = SCALE * D(queries[at_query + $iu]);
@i sums[$i] = V();
  var most = -3.0e38f;
  var sum = 0.0f;
  for (var other = seen.first; other < seen.end; other++) {
    let key = other * K_STRIDE + K_OFFSET + head * K_HEAD;
    var product = V();
@i   product += query[$i] * V(keys[key + $iu]);
    var score = total(product);
    if (HAS_TERMS) { score += terms(&query, key, head, other, token); }
    if (HAS_BIAS) { score += constants[BIAS + head * (2u * POSITIONS - 1u) + other + POSITIONS - 1u - token]; }
    if (score > most) {
      let shrink = exp(most - score);
      sum *= shrink;
@i     sums[$i] *= shrink;
      most = score;
    }
    let share = exp(score - most);
    sum += share;
    let value = other * V_STRIDE + V_OFFSET + head * V_HEAD;
@i   sums[$i] += share * V(values[value + $iu]);
  }
  let at = (token * HEADS + head) * SIZE;
@i out[at + $iu] = kept(sums[$i] / sum);
}
