// A result as f16. What an f16 cannot say becomes no number, which reaches the vector: left to the device it might as
// well become the largest one, because WGSL does not say what a conversion makes of it.
fn kept(x: V) -> OUT { return OUT(select(V(not_a_number()), x, abs(x) <= V(65504.0f))); }
