// Runs tests in the other ways in which a browser may run the package: `node --test` runs them without WebGPU and not isolated,
// this with one of the two, and with both. `node tests/ways.mjs FILE…`
import { spawnSync } from "node:child_process";

const WAYS = [["ISOVEC_TEST_WEBGPU"], ["ISOVEC_TEST_ISOLATED"], ["ISOVEC_TEST_WEBGPU", "ISOVEC_TEST_ISOLATED"]];
const files = process.argv.slice(2);
if (files.length === 0) throw new Error("name the files of the tests that are to run");

const failed = WAYS.filter((way) => {
  console.log(`\nwith ${way.join(" and ")}`);
  const env = { ...process.env, ...Object.fromEntries(way.map((name) => [name, "1"])) };
  return spawnSync(process.execPath, ["--test", "--test-timeout=300000", ...files], { stdio: "inherit", env }).status !== 0;
});
process.exitCode = failed.length > 0 ? 1 : 0;
