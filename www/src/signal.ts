/** A value that tells whoever watches it when it changes. */
export class Signal<T> {
  #value: T;
  #watchers: ((value: T) => void)[] = [];

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(value: T) {
    this.#value = value;
    for (const watcher of this.#watchers) watcher(value);
  }

  /** Calls now, and at every change. */
  watch(watcher: (value: T) => void): void {
    this.#watchers.push(watcher);
    watcher(this.#value);
  }
}
