// Which thread of its subgroup a thread is. A driver chooses how large subgroups are, from 4 threads to 128, and may
// leave places in them empty: only those that are there are counted.

var<private> there: vec4<u32>;
// Places of the subgroup.
var<private> places: u32;
// The threads in them, and which of these this one is.
var<private> lanes: u32;
var<private> rank: u32;

fn enter(subgroup_size: u32) {
  there = subgroupBallot(true);
  places = subgroup_size;
  lanes = subgroupAdd(1u);
  rank = subgroupExclusiveAdd(1u);
}

fn is_there(place: u32) -> bool { return (there[place / 32u] & (1u << (place % 32u))) != 0u; }
