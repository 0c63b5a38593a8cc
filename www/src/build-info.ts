/** What bindings/js/scripts/build-page.mjs writes about a build, in build.json. */
export interface BuildInfo {
  /** The hash of everything that the page is made of. */
  hash: string;
  /** Whether a model lies beside the page, in the folder model. */
  model: boolean;
  /** Bytes of each build of the engine that an encoder may get. */
  engine: Record<string, number>;
}

/** Asked for once. */
export const buildInfo: Promise<BuildInfo> = fetch("./build.json").then((response) => response.json() as Promise<BuildInfo>);
