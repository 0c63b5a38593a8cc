using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const main :Workerd.Worker = (
  compatibilityDate = "2026-01-01",
  modules = [
    (name = "worker.js", esModule = embed "bundled.js"),
    (name = "isovec/simd128.wasm", wasm = embed "node_modules/isovec/pkg/simd128/isovec_js_bg.wasm"),
    (name = "model/config.json", data = embed "model/config.json"),
    (name = "model/tokenizer.json", data = embed "model/tokenizer.json"),
    (name = "model/modules.json", data = embed "model/modules.json"),
    (name = "model/1_Pooling/config.json", data = embed "model/1_Pooling/config.json"),
    (name = "model/sentence_bert_config.json", data = embed "model/sentence_bert_config.json"),
    (name = "model/model.safetensors", data = embed "model/model.safetensors"),
  ],
);
