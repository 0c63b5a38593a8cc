// What kernels over rows share: sums between the threads of a group, within subgroups first, then of theirs in order.
// That takes two barriers, where a tree takes one for each of its levels.

@group(0) @binding(0) var<storage, read_write> out: array<OUT>;

// One of each subgroup.
var<workgroup> branches: array<f32, THREADS>;
var<private> subgroup: u32;
var<private> subgroups: u32;

// Has every thread know what a subgroup came to.
fn tell(own: f32) {
  if (rank == 0u) { branches[subgroup] = own; }
  workgroupBarrier();
}

fn tree_sum(own: f32, thread: u32) -> f32 {
  tell(subgroupAdd(own));
  var all = branches[0];
  for (var at = 1u; at < subgroups; at++) { all += branches[at]; }
  workgroupBarrier();
  return all;
}

fn tree_product(own: f32, thread: u32) -> f32 {
  tell(subgroupMul(own));
  var all = branches[0];
  for (var at = 1u; at < subgroups; at++) { all *= branches[at]; }
  workgroupBarrier();
  return all;
}

fn tree_max(own: f32, thread: u32) -> f32 {
  let none = subgroupAny(is_nan(own));
  tell(select(subgroupMax(own), not_a_number(), none));
  var all = branches[0];
  for (var at = 1u; at < subgroups; at++) { all = larger(all, branches[at]); }
  workgroupBarrier();
  return all;
}

fn tree_min(own: f32, thread: u32) -> f32 { return -tree_max(-own, thread); }
