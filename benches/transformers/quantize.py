"""What transformers.js' own conversion makes of a BERT for its default dtype, q8: dynamic quantisation
by ONNX Runtime's tools, signed weights in 7 bits (`reduce_range`) by output channel, activations in
unsigned 8 bits by tensor (https://github.com/huggingface/transformers.js, scripts/convert.py and
scripts/quantize.py). The tidying by onnxslim before it is left out; it changes no number.

Usage: quantize.py MODEL OUT"""

import sys

from onnxruntime.quantization import QuantType, quantize_dynamic

model, out = sys.argv[1:]
quantize_dynamic(
    model,
    out,
    per_channel=True,
    reduce_range=True,
    weight_type=QuantType.QInt8,
    extra_options={"EnableSubgraph": True, "MatMulConstBOnly": True},
)
