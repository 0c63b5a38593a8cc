import { PageError } from "./page-error.js";


/** Texts, and the vectors that a program without any inference runtime made of them (tests/data/reference). */
export interface Reference {
  texts: string[];
  vectors: Float32Array[];
}

/** The reference that is shipped with the page. */
export async function reference(): Promise<Reference> {
  const get = async (name: string) => {
    const response = await fetch(`./reference/${name}`);
    if (!response.ok) throw new PageError(`reference/${name} is not there (${response.status}).`, "Reload the page.");
    return response;
  };
  const [texts, vectors] = await Promise.all([get("texts.txt"), get("vectors.npy")]);
  return { texts: (await texts.text()).replace(/\n$/, "").split("\n"), vectors: readNpy(await vectors.arrayBuffer()) };
}

/** The rows of a NumPy file, version 1, with float32 `[rows, columns]`. */
function readNpy(file: ArrayBuffer): Float32Array[] {
  const length = new DataView(file).getUint16(8, true);
  const header = new TextDecoder("latin1").decode(new Uint8Array(file, 10, length));
  const shape = /'descr': '<f4', 'fortran_order': False, 'shape': \((\d+), (\d+)\)/.exec(header);
  if (!shape) throw new PageError("reference/vectors.npy is not in the expected form.", "Build the page again.");
  const [rows, columns] = [Number(shape[1]), Number(shape[2])];
  return Array.from({ length: rows }, (_, row) => new Float32Array(file, 10 + length + 4 * row * columns, columns));
}
