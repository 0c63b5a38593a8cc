// The page stands on the npm package alone.
import { Embedder, IsovecError, similarity } from "./isovec/dist/index.js";

const byId = (id) => document.getElementById(id);
const [form, state, progress, score, meter] = ["form", "state", "progress", "score", "meter"].map(byId);

// ?model= takes a hub id or a folder of this site; set-up serves the demo's model.
const model = new URLSearchParams(location.search).get("model") ?? "/models/all-MiniLM-L6-v2/";

function say(text) {
  state.textContent = text;
}

function explain(error) {
  say(error instanceof IsovecError ? `${error.kind}: ${error.message}` : String(error));
  progress.hidden = true;
}

function onProgress({ file, bytes, total }) {
  say(`Loading ${file}: ${(bytes / 1e6).toFixed(1)}${total ? ` of ${(total / 1e6).toFixed(1)}` : ""} MB`);
  if (total) progress.value = bytes / total;
}

try {
  const embedder = await Embedder.load(model, { onProgress });
  const { engine, provider, version } = embedder.provider();
  say(`${engine} ${version} on ${provider}, ${embedder.dimension} components`);
  progress.hidden = true;
  byId("go").disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("go").disabled = true;
    try {
      const vectors = await embedder.embed([byId("a").value, byId("b").value]);
      const value = similarity(vectors.row(0), vectors.row(1));
      score.textContent = value.toFixed(3);
      meter.value = Math.max(0, value);
    } catch (error) {
      explain(error);
    } finally {
      byId("go").disabled = false;
    }
  });
  form.requestSubmit();
} catch (error) {
  explain(error);
}
