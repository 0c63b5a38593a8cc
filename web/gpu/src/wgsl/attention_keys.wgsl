// What attention reads and writes, and which keys a query sees: those of its own text that are seen, as far as it reaches.

@group(0) @binding(0) var<storage, read_write> out: array<OUT>;
@group(0) @binding(3) var<storage, read> queries: array<Q_ITEMS>;
@group(0) @binding(4) var<storage, read> keys: array<K_ITEMS>;
@group(0) @binding(5) var<storage, read> values: array<V_ITEMS>;

struct Seen { first: u32, end: u32 }

fn seen_by(token: u32) -> Seen {
  let text = text_of(token);
  var seen = Seen(first_token(text), seen_until(text));
  if (HAS_REACH) {
    seen.first = max(seen.first, token - min(token, REACH));
    seen.end = min(seen.end, token + REACH + 1u);
  }
  if (CAUSAL) {
    seen.end = min(seen.end, token + 1u);
  }
  return seen;
}
