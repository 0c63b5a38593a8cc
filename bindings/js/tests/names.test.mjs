// Names on their way between Rust and JavaScript, words for devices and weights, and what is refused: all of it without a
// module. Run by `cargo xtask test npm`, or by itself.
import assert from "node:assert/strict";
import { join } from "node:path";
import { before, test } from "node:test";
import { build } from "esbuild";
import { js } from "./site.mjs";

let ts;

before(async () => {
  const contents = ["names", "native", "words", "error", "knobs"].map((name) => `export * from "./${name}.ts";`).join("\n");
  const built = await build({ stdin: { contents, resolveDir: join(js, "ts") }, bundle: true, format: "esm", write: false });
  ts = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
});

test("names go to JavaScript and come back, values stay", () => {
  const rust = {
    memory_pool: { peak_memory_bytes: 3, per_session: [{ busy_seconds: 0.5, verdict: "no_difference" }] },
    cpu: { l1d_bytes: null, p50: 1 },
    shader_f16: true,
    operators: { MatMul: 2, my_own_op: 1 },
    identity: { some_name: "a_b" },
  };
  const javascript = {
    memoryPool: { peakMemoryBytes: 3, perSession: [{ busySeconds: 0.5, verdict: "no_difference" }] },
    cpu: { l1dBytes: null, p50: 1 },
    shaderF16: true,
    operators: { MatMul: 2, my_own_op: 1 },
    identity: { some_name: "a_b" },
  };
  assert.deepEqual(ts.camelCased(rust), javascript);
  assert.deepEqual(ts.snakeCased(javascript), rust);
  for (const plain of [null, 7, "a_b", true, []]) assert.deepEqual(ts.camelCased(plain), plain);
});

test("every knob's path goes to JavaScript and comes back", () => {
  assert.ok(ts.KNOBS.length > 40, String(ts.KNOBS.length));
  for (const path of ts.KNOBS) {
    const camel = ts.camelName(path);
    assert.ok(!camel.includes("_"), camel);
    assert.equal(ts.snakeName(camel), path);
    assert.equal(ts.spoken(`${path} is 0, (${path}) and \`${path}\`.`), `${camel} is 0, (${camel}) and \`${camel}\`.`);
  }
});

test("a configuration becomes Rust's, without what others named", () => {
  const config = {
    batching: { maxBatchSize: 8, maxWait: undefined },
    text: { prompts: { my_prompt: "a_b: ", camelPrompt: "" } },
    providers: { executionProviders: ["ort-webgpu"], options: { openvino: { device_type: "CPU", numStreams: "2" } } },
  };
  const native = ts.nativeConfig(config);
  assert.deepEqual(JSON.parse(native), {
    batching: { max_batch_size: 8 },
    text: { prompts: { my_prompt: "a_b: ", camelPrompt: "" } },
    providers: { execution_providers: ["ort-webgpu"], options: { openvino: { device_type: "CPU", numStreams: "2" } } },
  });
  delete config.batching.maxWait;
  assert.deepEqual(ts.configOf(native), config);
  assert.equal(ts.nativeConfig(() => {}), "null");
});

test("a name of Rust's is refused by its path", () => {
  for (const [config, from, to] of [
    [{ batching: { max_batch_size: 8 } }, "batching.max_batch_size", "batching.maxBatchSize"],
    [{ embedding_cache: { memory: 1 } }, "embedding_cache", "embeddingCache"],
    [{ providers: { webgpu: { low_power: true } } }, "providers.webgpu.low_power", "providers.webgpu.lowPower"],
  ]) {
    assert.throws(() => ts.nativeConfig(config), ({ kind, message }) => kind === "Config" && message.includes(`\`${from}\``) && message.includes(`\`${to}\``));
  }
});

test("messages name knobs as JavaScript does, and nothing else is touched", () => {
  for (const [rust, spoken] of [
    ["batching.max_queue_tokens is 0; batching.max_queue is 0", "batching.maxQueueTokens is 0; batching.maxQueue is 0"],
    ["there is no `token_counts` in model.onnx_data, see tokenizer_config.json", "there is no `token_counts` in model.onnx_data, see tokenizer_config.json"],
    ["xbatching.max_waiting", "xbatching.max_waiting"],
  ]) assert.equal(ts.spoken(rust), spoken);
  for (const [rust, spoken] of [
    ["unknown field `max_len`, expected one of `max_length`, `pooling`", "unknown field `maxLen`, expected one of `maxLength`, `pooling`"],
    ["unknown variant `x`, expected one of `cls`, `last_token`", "unknown variant `x`, expected one of `cls`, `last_token`"],
    ['there is no knob or group "embedding_cach"; did you mean "embedding_cache"?', 'there is no knob or group "embeddingCach"; did you mean "embeddingCache"?'],
    ["there is no knob session.inter_op_threads any more: use session.pool_size", "there is no knob session.interOpThreads any more: use session.poolSize"],
  ]) assert.equal(ts.spokenOfConfig(rust), spoken);
  const texts = ts.spokenWithin({ steps: ["set session.pool_size"], value: 3, nothing: null });
  assert.deepEqual(texts, { steps: ["set session.poolSize"], value: 3, nothing: null });
  const error = ts.typed(Object.assign(new Error("session.pool_size is 0"), { kind: "Config" }));
  assert.deepEqual([error instanceof ts.IsovecError, error.kind, error.message], [true, "Config", "session.poolSize is 0"]);
  const other = new TypeError("session.pool_size");
  assert.equal(ts.typed(other), other);
});

test("words for devices and weights are knobs", () => {
  const { inWords } = ts;
  assert.deepEqual(inWords({}), {});
  assert.deepEqual(inWords({ device: "cpu", dtype: "fp32" }), { providers: { executionProviders: ["cpu"] }, model: { dtype: "f32" } });
  assert.deepEqual(inWords({ device: "webgpu", dtype: "f16" }), { providers: { executionProviders: ["webgpu", "cpu"] }, model: { dtype: "f16" } });
  assert.deepEqual(inWords({ device: "auto", dtype: "auto" }), { providers: { providerAutoSelection: true }, model: { dtype: "auto" } });
  assert.deepEqual(["fp16", "bf16", "q8", "int8", "int8-fast"].map((dtype) => inWords({ dtype }).model.dtype), ["f16", "bf16", "int8", "int8", "int8-fast"]);
  const config = { model: { onnxFile: "a.onnx" }, providers: { webgpu: { lowPower: true } } };
  assert.deepEqual(inWords({ device: "webgpu", dtype: "int8", config }), {
    model: { onnxFile: "a.onnx", dtype: "int8" },
    providers: { webgpu: { lowPower: true }, executionProviders: ["webgpu", "cpu"] },
  });
  assert.deepEqual(config, { model: { onnxFile: "a.onnx" }, providers: { webgpu: { lowPower: true } } }, "what was given stays as it is");
  for (const [options, words] of [
    [{ device: "gpu" }, /`device` is "gpu".*"webgpu"/],
    [{ dtype: "q4" }, /`dtype` is "q4".*"int8"/],
    [{ device: "cpu", config: { providers: { executionProviders: ["webgpu"] } } }, /`device` and `config\.providers\.executionProviders`/],
    [{ device: "cpu", config: { providers: { providerAutoSelection: false } } }, /`device` and `config\.providers\.providerAutoSelection`/],
    [{ dtype: "f32", config: { model: { dtype: "f32" } } }, /`dtype` and `config\.model\.dtype`/],
  ]) assert.throws(() => inWords(options), ({ kind, message }) => kind === "Config" && words.test(message), JSON.stringify(options));
});
