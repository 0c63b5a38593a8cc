#!/usr/bin/env node
// GFLOP/s of the portable engine's matrix products in node or in a browser, beside the most that
// the machine does without memory.
//
//   node --experimental-wasm-relaxed-simd benches/wasm/kernels.mjs <ceiling.wasm>
//   node benches/wasm/kernels.mjs <ceiling.wasm> --browser /usr/bin/chromium
//
// The module: cargo build --release -p isovec-kernels --example ceiling --target
// wasm32-unknown-unknown, with RUSTFLAGS="-C target-feature=+simd128,+relaxed-simd".

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { measure } from './measure.mjs';

const [module, flag, browser] = process.argv.slice(2);
if (!module || (flag && (flag !== '--browser' || !browser))) {
  console.error('usage: kernels.mjs <ceiling.wasm> [--browser <program>]');
  process.exit(2);
}
const bytes = readFileSync(module);

function print({ name, gflops, share }) {
  const part = share === undefined ? '' : `  ${Math.round(share * 100)} % of the ceiling`;
  console.log(`${name.padEnd(40)} ${gflops.toFixed(1).padStart(6)} GFLOP/s${part}`);
}

const PAGE = `<!doctype html><script type="module">
import { measure } from '/measure.mjs';
const send = (line) => fetch('/line', { method: 'POST', body: JSON.stringify(line) });
try {
  const bytes = await (await fetch('/module.wasm')).arrayBuffer();
  const lines = [];
  await measure(bytes, (line) => lines.push(line));
  for (const line of lines) await send(line);
  await send({ done: true });
} catch (error) {
  await send({ error: String(error) });
}
</script>`;

/** Serves the page on this machine and prints what it sends, until it has sent all. */
async function inBrowser(program) {
  const profile = mkdtempSync(join(tmpdir(), 'isovec-kernels-'));
  const files = {
    '/': ['text/html', PAGE],
    '/measure.mjs': ['text/javascript', readFileSync(new URL('./measure.mjs', import.meta.url))],
    '/module.wasm': ['application/wasm', bytes],
  };
  let settle;
  const done = new Promise((resolve, reject) => (settle = { resolve, reject }));
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      let body = '';
      for await (const part of request) body += part;
      response.end();
      const line = JSON.parse(body);
      if (line.error) settle.reject(new Error(line.error));
      else if (line.done) settle.resolve();
      else print(line);
      return;
    }
    const file = files[request.url];
    response.writeHead(file ? 200 : 404, { 'content-type': file?.[0] ?? 'text/plain' });
    response.end(file?.[1]);
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const child = spawn(
    program,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      `--user-data-dir=${profile}`,
      `http://127.0.0.1:${server.address().port}/`,
    ],
    { stdio: 'ignore' },
  );
  child.on('error', settle.reject);
  child.on('exit', (code) => settle.reject(new Error(`the browser ended with ${code}`)));
  try {
    await done;
  } finally {
    child.removeAllListeners('exit');
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.kill()) await ended;
    server.close();
    server.closeAllConnections();
    rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

await (browser ? inBrowser(browser) : measure(bytes, print));
