"""Layers of the shape of Qwen3-Embedding-0.6B in llama.cpp, with random weights: those of `cargo xtask bench decoder`.

    pip install llama-cpp-python gguf
    python3 benches/peers/_llama_cpp.py [f16|f32] [LAYERS]

One text, one thread, the vector of the last token.
"""

import ctypes
import sys
import tempfile
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
from _turns import median_ms

HIDDEN, WIDE, HEADS, SHARED, HEAD, WORDS = 1024, 3072, 16, 8, 128, 15_167
TEXTS = [(16, 30), (128, 15), (1024, 5)]


def write(path: Path, layers: int, dtype: type) -> None:
    rng = np.random.default_rng(78)
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(layers)
    writer.add_context_length(2048)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(SHARED)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_vocab_size(WORDS)
    writer.add_tokenizer_model("no_vocab")
    writer.add_pooling_type(gguf.PoolingType.LAST)

    def matrix(name: str, rows: int, columns: int) -> None:
        values = rng.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns, dtype=np.float32)
        writer.add_tensor(name, values.astype(dtype))

    def norm(name: str, size: int) -> None:
        writer.add_tensor(name, np.ones(size, dtype=np.float32))

    matrix("token_embd.weight", WORDS, HIDDEN)
    for layer in range(layers):
        name = f"blk.{layer}."
        norm(name + "attn_norm.weight", HIDDEN)
        matrix(name + "attn_q.weight", HEADS * HEAD, HIDDEN)
        matrix(name + "attn_k.weight", SHARED * HEAD, HIDDEN)
        matrix(name + "attn_v.weight", SHARED * HEAD, HIDDEN)
        norm(name + "attn_q_norm.weight", HEAD)
        norm(name + "attn_k_norm.weight", HEAD)
        matrix(name + "attn_output.weight", HIDDEN, HEADS * HEAD)
        norm(name + "ffn_norm.weight", HIDDEN)
        matrix(name + "ffn_gate.weight", WIDE, HIDDEN)
        matrix(name + "ffn_up.weight", WIDE, HIDDEN)
        matrix(name + "ffn_down.weight", HIDDEN, WIDE)
    norm("output_norm.weight", HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    word, layers = (sys.argv[1:] + ["f16"])[0], int((sys.argv[2:] + ["4"])[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        write(path, layers, {"f16": np.float16, "f32": np.float32}[word])
        llama_cpp.llama_backend_init()
        options = llama_cpp.llama_model_default_params()
        model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = 1024
        settings.n_threads = settings.n_threads_batch = 1
        settings.embeddings = True
        settings.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_LAST
        context = llama_cpp.llama_init_from_model(model, settings)
        print(f"llama-cpp-python {llama_cpp.__version__}, {layers} layers, {word}; {llama_cpp.llama_print_system_info().decode()}")
        for tokens, rounds in TEXTS:
            batch = llama_cpp.llama_batch_init(tokens, 0, 1)
            batch.n_tokens = tokens
            for at in range(tokens):
                batch.token[at], batch.pos[at], batch.n_seq_id[at], batch.seq_id[at][0], batch.logits[at] = at * 7919 % 15_000, at, 1, 0, 1

            def run(batch=batch) -> None:
                llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
                if llama_cpp.llama_decode(context, batch) != 0:
                    raise RuntimeError("llama.cpp refused the batch")
                vector = llama_cpp.llama_get_embeddings_seq(context, 0)
                if not np.isfinite(np.ctypeslib.as_array(ctypes.cast(vector, ctypes.POINTER(ctypes.c_float)), (HIDDEN,))).all():
                    raise RuntimeError("the vector is not finite")

            print(f"1 x {tokens}: {median_ms(rounds, run):.1f} ms", flush=True)


main()
