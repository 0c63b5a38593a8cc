// For each head and query: as attention.wgsl, by a subgroup instead of a thread. Its threads take a key each, agree
// on the largest score, and tell one another their shares while each adds up some columns of the values. That is what
// suits GPUs, which have far more threads than short batches have queries, and reads values side by side.
//
// Lines that begin with @i are repeated for every D of a head's columns, with @j for every column of a thread.
//
// D is a vector of four or, where a head's columns are no multiple of four, one number; SIZE and what belongs to
// queries and keys are counted in D, WIDTH and what belongs to values in numbers.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(subgroup_size) size: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(num_subgroups) subgroups: u32,
) {
  enter(size);
  for (var at = subgroup; at < QUERIES; at += subgroups) {
    let token = (group.x + group.z * groups.x) * QUERIES + at;
    if (token < tokens()) { attend(token, group.y); }
  }
}

fn attend(token: u32, head: u32) {
  let seen = seen_by(token);
  var query: array<D, SIZE>;
  let at_query = token * Q_STRIDE + Q_OFFSET + head * Q_HEAD;
@i query[$i] = SCALE * D(queries[at_query + $iu]);
  // All columns at once, unless there are fewer threads than the device has in its smallest subgroup.
  for (var left = 0u; left < WIDTH; left += COLUMNS * lanes) {
    var sums: array<f32, COLUMNS>;
@j   sums[$j] = 0.0f;
    var most = -3.0e38f;
    var sum = 0.0f;
    for (var start = seen.first; start < seen.end; start += lanes) {
      let inside = start + rank < seen.end;
      let other = min(start + rank, seen.end - 1u);
      let key = other * K_STRIDE + K_OFFSET + head * K_HEAD;
      var product = D();
@i     product += query[$i] * D(keys[key + $iu]);
      var score = total(product);
      if (HAS_TERMS) { score += terms(&query, key, head, other, token); }
      if (HAS_BIAS) { score += constants[BIAS + head * (2u * POSITIONS - 1u) + other + POSITIONS - 1u - token]; }
      let top = max(most, subgroupMax(select(-3.0e38f, score, inside)));
      let shrink = exp(most - top);
      let share = select(0.0f, exp(score - top), inside);
      sum = sum * shrink + subgroupAdd(share);
@j     sums[$j] *= shrink;
      var next = start;
      for (var place = 0u; place < places && next < seen.end; place++) {
        if (!is_there(place)) { continue; }
        let weight = subgroupShuffle(share, place);
        let value = next * V_STRIDE + V_OFFSET + head * V_HEAD;
        // Larger subgroups than the smallest have fewer columns a thread.
        let first = left + rank;
@j       if (first + $ju * lanes < WIDTH) { sums[$j] += weight * f32(values[value + first + $ju * lanes]); }
        next++;
      }
      most = top;
    }
    let at = (token * HEADS + head) * WIDTH;
    let first = left + rank;
@j   if (first + $ju * lanes < WIDTH) { out[at + first + $ju * lanes] = kept(sums[$j] / sum); }
  }
}
