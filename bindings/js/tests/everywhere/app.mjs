// A user's app in a folder of its own, with the packed package installed as users install it.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { js, send, serve, tiny } from "../site.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { version } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));
/** What `npm test` packs before the tests run. */
const tarball = join(here, `isovec-${version}.tgz`);

/** A copy of `apps/NAME` until the tests are over, with the small model in its folder `model`. */
export function app(name, model, beside = tmpdir()) {
  const folder = realpathSync(mkdtempSync(join(beside, "app-")));
  after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(here, "apps", name), folder, { recursive: true });
  cpSync(tiny, join(folder, model), { recursive: true });
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--silent", tarball], { cwd: folder });
  return folder;
}

/** Serves a built app, and says where. */
export function served(folder, headers = {}) {
  return serve((request, response, path) => send(response, join(folder, path === "/" ? "index.html" : path), headers));
}

/** The one program of this platform that a package's optional packages bring: `--ignore-scripts` leaves it where it lies. */
export function program(scope, path) {
  const folder = join(here, "node_modules", scope);
  const [first] = readdirSync(folder);
  return join(folder, first, path);
}
