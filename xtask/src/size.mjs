// Prints raw, gzip and brotli sizes of the files named on the command line, as JSON lines.
// Node has both compressors, at the levels that content servers use for files they compress once.
import { readFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

for (const path of process.argv.slice(2)) {
  const bytes = readFileSync(path);
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  console.log(JSON.stringify({ raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotli.length }));
}
