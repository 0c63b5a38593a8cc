// What kernels over rows share: sums between the threads of a group, as a tree.

@group(0) @binding(0) var<storage, read_write> out: array<OUT>;

var<workgroup> branches: array<f32, THREADS>;

fn tree_sum(own: f32, thread: u32) -> f32 {
  branches[thread] = own;
  workgroupBarrier();
  for (var apart = THREADS / 2u; apart > 0u; apart /= 2u) {
    if (thread < apart) { branches[thread] += branches[thread + apart]; }
    workgroupBarrier();
  }
  let all = branches[0];
  workgroupBarrier();
  return all;
}

fn tree_product(own: f32, thread: u32) -> f32 {
  branches[thread] = own;
  workgroupBarrier();
  for (var apart = THREADS / 2u; apart > 0u; apart /= 2u) {
    if (thread < apart) { branches[thread] *= branches[thread + apart]; }
    workgroupBarrier();
  }
  let all = branches[0];
  workgroupBarrier();
  return all;
}

fn tree_max(own: f32, thread: u32) -> f32 {
  branches[thread] = own;
  workgroupBarrier();
  for (var apart = THREADS / 2u; apart > 0u; apart /= 2u) {
    if (thread < apart) { branches[thread] = larger(branches[thread], branches[thread + apart]); }
    workgroupBarrier();
  }
  let all = branches[0];
  workgroupBarrier();
  return all;
}

fn tree_min(own: f32, thread: u32) -> f32 { return -tree_max(-own, thread); }
