"""Larger models on an NVIDIA GPU, by PyTorch with random weights: those of `cargo xtask bench gpu -- models`.

    python3 benches/peers/_torch_models.py

Needs torch with CUDA and transformers.
"""

import torch
from _turns import median_ms
from transformers import BertConfig, BertModel, CLIPVisionConfig, CLIPVisionModelWithProjection, Qwen3Config, Qwen3Model

ENCODER = [(1, 16, 40), (1, 128, 40), (1, 512, 20), (32, 256, 10)]
DECODER = [(1, 16, 40), (1, 128, 40), (1, 1024, 20), (32, 256, 10)]
PICTURES = [(1, 40), (8, 40), (64, 10)]


def bert():
    model = BertModel(BertConfig())
    return "BERT-base", model, ENCODER, lambda ids: model(ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(1)


def qwen3():
    config = Qwen3Config(
        vocab_size=15_167, hidden_size=1024, num_hidden_layers=7, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
        intermediate_size=3072, use_cache=False,
    )  # fmt: skip
    model = Qwen3Model(config)
    return "7 of 28 layers of Qwen3-0.6B", model, DECODER, lambda ids: model(ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, -1]


def clip():
    model = CLIPVisionModelWithProjection(CLIPVisionConfig())
    return "CLIP's ViT-B/32", model, PICTURES, lambda pixels: model(pixels.to(model.dtype)).image_embeds


@torch.inference_mode()
def run(forward, given):
    return torch.nn.functional.normalize(forward(given.to("cuda", non_blocking=True)).float()).cpu()


def main():
    print(torch.__version__, torch.cuda.get_device_name())
    for make in (bert, qwen3, clip):
        name, model, sizes, forward = make()
        model.eval().to("cuda")
        for way, tf32, half in [("f32", False, False), ("TF32", True, False), ("f16", False, True)]:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.backends.cudnn.allow_tf32 = tf32
            if half:
                model.half()
            for *shape, rounds in sizes:
                given = torch.arange(shape[0] * shape[1]).reshape(shape) * 7919 % 15_000 if len(shape) == 2 else torch.rand(shape[0], 3, 224, 224)
                taken = median_ms(rounds, lambda: run(forward, given))
                print(f"{name}, {way}: {' x '.join(map(str, shape))}: {taken:.3f} ms", flush=True)


main()
