// The texts of a batch, as the host writes them (batch.rs says where what is), and the small numbers
// of the model.

@group(0) @binding(1) var<storage, read> batch: array<u32>;
@group(0) @binding(2) var<storage, read> constants: array<f32>;

fn tokens() -> u32 { return batch[0]; }
fn texts() -> u32 { return batch[1]; }
fn first_token(text: u32) -> u32 { return batch[HEAD + text]; }
fn seen_until(text: u32) -> u32 { return batch[batch[5] + text]; }
fn text_of(token: u32) -> u32 { return batch[batch[2] + token]; }
fn not_a_number() -> f32 { return bitcast<f32>(batch[3]); }

// A number that the caller gave for a token: column c of a tensor of so many columns, which so many stand before.
fn given(before: u32, columns: u32, token: u32, c: u32) -> f32 {
  return bitcast<f32>(batch[batch[4] + before * tokens() + token * columns + c]);
}

// Where a token is in its text.
fn position(token: u32) -> u32 { return token - first_token(text_of(token)); }
fn length_of(text: u32) -> u32 { return first_token(text + 1u) - first_token(text); }
