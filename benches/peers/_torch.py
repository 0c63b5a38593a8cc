"""sentence-transformers' model on an NVIDIA GPU, by PyTorch: the sizes of `cargo xtask bench gpu`, and texts.

    python3 benches/peers/_torch.py MODEL_FOLDER [TEXTS]

TEXTS has a text a line. Needs torch with CUDA and sentence-transformers.
"""

import statistics
import sys
import time

import torch
from _turns import median_ms
from sentence_transformers import SentenceTransformer

SIZES = [(1, 16, 200), (8, 64, 100), (32, 128, 40), (128, 64, 20), (128, 256, 10), (512, 128, 10)]


@torch.inference_mode()
def run(model, ids):
    """The vectors of equally long texts, on the processor: what `encode` does behind its tokenizer."""
    ids = ids.to("cuda", non_blocking=True)
    mask = torch.ones_like(ids)
    out = model({"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)})
    return torch.nn.functional.normalize(out["sentence_embedding"].float()).cpu()


def main():
    model = SentenceTransformer(sys.argv[1], device="cuda")
    texts = [line for line in open(sys.argv[2]).read().splitlines() if line] if len(sys.argv) > 2 else []
    print(torch.__version__, torch.cuda.get_device_name())
    for name, tf32, half in [("f32", False, False), ("TF32", True, False), ("f16", False, True)]:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        if half:
            model.half()
        for rows, length, rounds in SIZES:
            ids = torch.tensor([at * 7919 % 30_000 for at in range(rows * length)]).reshape(rows, length)
            taken = median_ms(rounds, lambda: run(model, ids))
            print(f"{name}: {rows} texts of {length} tokens: {taken:.3f} ms")
        if texts:
            rates = []
            for turn in range(4):
                started = time.perf_counter()
                model.encode(texts, batch_size=128, show_progress_bar=False)
                rates.append(len(texts) / (time.perf_counter() - started))
            print(f"{name}: encode: {statistics.median(rates[1:]):.0f} texts/s")


main()
