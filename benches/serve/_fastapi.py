"""The server that many write themselves: FastAPI around `SentenceTransformer.encode` on ONNX Runtime, in the dialect of OpenAI.

    MODEL=FOLDER uvicorn --app-dir benches/serve _fastapi:app    # FOLDER has model.onnx
    DEVICE=cuda MODEL=FOLDER uvicorn …                           # by PyTorch on a GPU; with HALF=1 in f16
"""

from __future__ import annotations

import os

from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

if device := os.environ.get("DEVICE"):
    model = SentenceTransformer(os.environ["MODEL"], device=device)
    if os.environ.get("HALF"):
        model.half()
else:
    model = SentenceTransformer(os.environ["MODEL"], backend="onnx", model_kwargs={"file_name": "model.onnx"})
app = FastAPI()


class Asked(BaseModel):
    model: str
    input: list[str]


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


# Not `async`: FastAPI runs it on a thread, as its documentation advises for calls that compute.
@app.post("/v1/embeddings")
def embeddings(asked: Asked) -> dict[str, object]:
    vectors = model.encode(asked.input, normalize_embeddings=True)
    data = [{"object": "embedding", "index": at, "embedding": vector.tolist()} for at, vector in enumerate(vectors)]
    return {"object": "list", "model": asked.model, "data": data}
