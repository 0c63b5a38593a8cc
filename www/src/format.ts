/** A number with the separators of the page's language. */
export const count = (value: number): string => Math.round(value).toLocaleString("en");

/** "1 passage", "2 passages". */
export const plural = (value: number, word: string): string => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** Bytes in the unit that gives a short number. */
export function bytes(value: number): string {
  if (value < 1000) return plural(value, "byte");
  if (value < 1e6) return `${(value / 1e3).toFixed(0)} KB`;
  return value < 1e9 ? `${(value / 1e6).toFixed(1)} MB` : `${(value / 1e9).toFixed(2)} GB`;
}

/** Milliseconds, with a decimal where it tells something. */
export function ms(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1) : count(value)} ms`;
}
