"""PP-OCR's networks as folders that `isovec optimize` takes, and pictures for each: pages for the detector, lines for the other two.

    python -m venv venv && venv/bin/pip install onnx==1.20.0 pillow
    venv/bin/python benches/techniques/ocr.py NETWORKS FOLDER [--operator-set 13]
    python benches/techniques/run.py FOLDER/rec --isovec isovec --images FOLDER/lines --page

NETWORKS is the folder of PP-OCR's files (`cargo xtask setup ocr`). Each network gets a fixed input, and its output as one row named
`logits`: the report compares the detector's map and the probabilities of characters. Pages and the places of their lines are those of
tests/data/pages. Networks keep their operator sets, 11 and 12, unless another is named: `--int8` needs 13.
"""

import argparse
import json
from pathlib import Path

import onnx
from onnx import helper, version_converter
from PIL import Image

PAGES = Path(__file__).parents[2] / "tests/data/pages"
# The name of a folder, its file, the height and width of its input, and how many values it gives.
NETWORKS = {
    "det": ("ch_PP-OCRv4_det_infer.onnx", 320, 320, 320 * 320),
    "cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", 48, 192, 2),
    "rec": ("ch_PP-OCRv4_rec_infer.onnx", 48, 320, 320 // 8 * 6625),
}


def fixed(network, height, width, values):
    """Of one picture of that size, with one row as its output."""
    graph = network.graph
    for dim, extent in zip(graph.input[0].type.tensor_type.shape.dim, (1, 3, height, width), strict=True):
        dim.dim_value = extent
    output = graph.output[0]
    graph.node.append(helper.make_node("Flatten", [output.name], ["logits"], axis=1))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("logits", output.type.tensor_type.elem_type, [1, values]))
    return network


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--operator-set", type=int)
    asked = parser.parse_args()
    folder = asked.folder
    for name, (file, height, width, values) in NETWORKS.items():
        place = folder / name
        place.mkdir(parents=True)
        network = onnx.load(asked.networks / file)
        if asked.operator_set:
            network = version_converter.convert_version(network, asked.operator_set)
        onnx.save(fixed(network, height, width, values), place / "model.onnx")
        (place / "config.json").write_text("{}\n")
        halves = [0.5, 0.5, 0.5]
        pixels = {"do_resize": True, "size": {"height": height, "width": width}, "resample": 2, "do_rescale": True, "do_normalize": True, "image_mean": halves, "image_std": halves}
        (place / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": "ViTImageProcessor"} | pixels))
    for kind in ("pages", "lines"):
        (folder / kind).mkdir()
    for page in json.loads((PAGES / "rapidocr.json").read_text()):
        # Of an empty page the map is 0, and has no cosine.
        if not page["lines"]:
            continue
        picture = Image.open(PAGES / page["file"]).convert("RGB")
        picture.save(folder / "pages" / page["file"])
        for at, line in enumerate(page["lines"]):
            across, down = zip(*line["corners"], strict=True)
            box = [round(edge) for edge in (min(across), min(down), max(across), max(down))]
            picture.crop(box).save(folder / "lines" / f"{Path(page['file']).stem}-{at:02}.png")


if __name__ == "__main__":
    main()
