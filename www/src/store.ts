import { PageError } from "./page-error.js";

// Indexes that the visitor made, in the browser's IndexedDB, as the files that `Embeddings.save` writes.

/** An index that is kept. */
export interface Kept {
  id: number;
  name: string;
  made: Date;
  passages: number;
  content: Blob;
}

const NAME = "isovec-page";
const STORE = "indexes";

async function open(): Promise<IDBDatabase> {
  try {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id", autoIncrement: true });
    return await answer(request);
  } catch (cause) {
    const todo = "Private windows often refuse it; save your index as a file instead.";
    throw new PageError("This browser keeps no indexes for the page.", todo, { cause });
  }
}

function answer<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** One step in the store; it counts when it is on the disk. */
async function within<T>(mode: IDBTransactionMode, step: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  try {
    const transaction = database.transaction(STORE, mode);
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const [result] = await Promise.all([answer(step(transaction.objectStore(STORE))), done]);
    return result;
  } finally {
    database.close();
  }
}

/** Keeps an index. */
export async function keep(index: Omit<Kept, "id">): Promise<void> {
  await within("readwrite", (store) => store.add(index));
}

/** All that are kept, the newest first. */
export async function kept(): Promise<Kept[]> {
  return (await within<Kept[]>("readonly", (store) => store.getAll())).reverse();
}

/** Takes one away. */
export async function forget(id: number): Promise<void> {
  await within("readwrite", (store) => store.delete(id));
}
