"""Python fastembed as a contestant of `cargo xtask bench python`, which starts it and takes turns
with it: a text a line comes in; the seconds that embedding it took and the vector's components go
out. Arguments: a folder with model.onnx (no pooling in it) and tokenizer files; threads, 0 for the
default."""

import sys
import time

import fastembed
import onnxruntime
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

NAME = "local/all-MiniLM-L6-v2"


def main() -> None:
    folder, threads = sys.argv[1], int(sys.argv[2])
    TextEmbedding.add_custom_model(
        model=NAME,
        pooling=PoolingType.MEAN,
        normalization=True,
        # Never asked, because the folder is given; it must only not be empty.
        sources=ModelSource(hf=NAME),
        dim=384,
        model_file="model.onnx",
    )
    model = TextEmbedding(NAME, specific_model_path=folder, threads=threads or None)
    print(f"fastembed {fastembed.__version__}, onnxruntime {onnxruntime.__version__}", flush=True)
    for line in sys.stdin:
        text = line.rstrip("\n")
        started = time.perf_counter()
        (vector,) = model.embed([text])
        seconds = time.perf_counter() - started
        print(seconds, *vector.tolist(), flush=True)


if __name__ == "__main__":
    main()
