/** One vector of a `Tensor`. */
export class TensorRow implements Iterable<number> {
  readonly type = "float32";
  /** The components of the vector, a view of the tensor's. */
  readonly data: Float32Array;

  constructor(data: Float32Array) {
    this.data = data;
  }

  /** The number of components. */
  get dims(): number[] {
    return [this.data.length];
  }

  /** The same, as a number. */
  get size(): number {
    return this.data.length;
  }

  /** The components as an array. */
  tolist(): number[] {
    return Array.from(this.data);
  }

  [Symbol.iterator](): Iterator<number> {
    return this.data[Symbol.iterator]();
  }
}

/**
 * Vectors, a row for each text: what of the `Tensor` of transformers.js reads results. `tensor[0]`, `for (const row of
 * tensor)` and `tensor.tolist()` give the rows, `tensor.data` all numbers.
 */
export class Tensor implements Iterable<TensorRow> {
  readonly type = "float32";
  /** All vectors, row after row. */
  readonly data: Float32Array;
  /** The number of vectors, and of their components. */
  readonly dims: number[];
  readonly [row: number]: TensorRow;

  constructor(data: Float32Array, dims: [rows: number, columns: number]) {
    this.data = data;
    this.dims = dims;
    // Rows are made when they are asked for; most readers want `data` or `tolist` and none of them.
    return new Proxy(this, {
      get: (tensor, name, receiver) => (typeof name === "string" && /^\d+$/.test(name) ? tensor.#row(Number(name)) : (Reflect.get(tensor, name, receiver) as unknown)),
    });
  }

  /** The number of all components. */
  get size(): number {
    return this.data.length;
  }

  /** The vectors as arrays. */
  tolist(): number[][] {
    return Array.from(this, (row) => row.tolist());
  }

  *[Symbol.iterator](): Iterator<TensorRow> {
    for (let index = 0; index < this.dims[0]!; index++) yield this[index]!;
  }

  #row(index: number): TensorRow {
    const [rows, columns] = this.dims as [number, number];
    if (index >= rows) throw new RangeError(`row ${index} of ${rows}`);
    return new TensorRow(this.data.subarray(index * columns, (index + 1) * columns));
  }
}
