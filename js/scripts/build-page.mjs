// Builds the page: what is in www/, and the npm package beside it under isovec/.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const js = dirname(dirname(fileURLToPath(import.meta.url)));
const www = join(dirname(js), "www");
const dist = join(www, "dist");
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
cpSync(join(www, "src"), dist, { recursive: true });
for (const folder of ["dist", "pkg"]) cpSync(join(js, folder), join(dist, "isovec", folder), { recursive: true });
