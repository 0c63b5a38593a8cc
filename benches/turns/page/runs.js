// The page's side of the runs with turns and without: a worker of the bench's own, in which the package computes.
const worker = new Worker("/page/worker.js", { type: "module" });

const ask = (message) =>
  new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data));
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage(message);
  });

globalThis.load = (model) => ask({ model });
globalThis.run = (texts, turns) => ask({ texts, turns });
