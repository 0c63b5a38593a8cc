/** A failure in words: what happened, and what to do. */
export interface Explained {
  what: string;
  todo: string;
}

/** An error whose words are the page's own. */
export class PageError extends Error implements Explained {
  constructor(readonly what: string, readonly todo: string, options?: ErrorOptions) {
    super(`${what} ${todo}`, options);
  }
}
