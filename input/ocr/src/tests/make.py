"""Writes what the tests hold isovec-ocr to: what rapidocr 1.4.4 and OpenCV 4.10 make of pictures and maps.

    python -m venv venv && venv/bin/pip install rapidocr-onnxruntime==1.4.4
    venv/bin/pip uninstall -y opencv-python && venv/bin/pip install opencv-python-headless==4.10.0.84 && venv/bin/python make.py

Pictures and maps are made of a generator that the test has too, so that `peer.json` holds results alone. A hash is the SHA-256
of bytes.
"""

import hashlib
import json
from pathlib import Path

import cv2
import numpy as np
from rapidocr_onnxruntime import RapidOCR
from rapidocr_onnxruntime.ch_ppocr_det.utils import DBPostProcess, DetPreProcess

assert cv2.__version__ == "4.10.0", cv2.__version__


class Noise:
    """A linear congruential generator, with the factors of Numerical Recipes; its upper 8 bits are taken."""

    def __init__(self, seed):
        self.state = seed

    def byte(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return self.state >> 24

    def bytes(self, count):
        return np.array([self.byte() for _ in range(count)], np.uint8)

    def picture(self, width, height):
        return self.bytes(width * height * 3).reshape(height, width, 3)

    def below(self, limit):
        return (self.byte() * 256 + self.byte()) % limit


def sha(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def floats(values):
    return [float(value) for value in np.asarray(values).reshape(-1)]


def resized():
    sizes = [
        ((50, 70), (96, 64)), ((50, 70), (25, 35)), ((50, 70), (25, 36)), ((17, 9), (320, 48)), ((64, 32), (32, 32)),
        ((1, 1), (32, 32)), ((1, 9), (5, 48)), ((33, 64), (33, 64)), ((90, 21), (31, 7)), ((40, 48), (41, 48)),
    ]
    for (width, height), to in sizes:
        picture = Noise(width * 1000 + height).picture(width, height)
        yield {"from": [width, height], "to": to, "pixels": sha(cv2.resize(picture, to))}


def crops(reader):
    for seed in range(24):
        noise = Noise(seed)
        width, height = 60 + noise.below(60), 50 + noise.below(40)
        picture = noise.picture(width, height)
        turn = noise.below(4)
        left, top = noise.below(20), noise.below(12)
        wide, high = (noise.below(30) + 20, noise.below(10) + 8)[:: 1 if seed % 3 else -1]
        corners = [[left, top], [left + wide, top], [left + wide, top + high], [left, top + high]]
        if turn:
            corners = [[x + noise.below(7) - 3, y + noise.below(7) - 3] for x, y in corners]
        corners = np.clip(corners, 0, [width - 1, height - 1]).astype(np.float32)
        (crop,) = reader.get_crop_img_list(picture, [corners])
        yield {
            "seed": seed, "from": [width, height], "corners": corners.astype(int).tolist(),
            "to": [crop.shape[1], crop.shape[0]], "pixels": sha(crop),
        }


def contours():
    for seed in range(12):
        noise = Noise(seed)
        width, height = 8 + noise.below(30), 8 + noise.below(30)
        bits = (noise.bytes(width * height) < 100 + 10 * seed).astype(np.uint8).reshape(height, width)
        dilated = cv2.dilate(bits, np.array([[1, 1], [1, 1]]))
        for mask in [bits, dilated]:
            found, _ = cv2.findContours(mask * 255, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
            points = [np.unique(border.reshape(-1, 2), axis=0).astype(np.int32) for border in found]
            yield {
                "seed": seed, "size": [width, height], "dilated": mask is dilated, "mask": sha(mask),
                "count": len(points), "points": sha(np.concatenate(points)),
            }


def as_border(points):
    """The corners of a hull in the order that it has for a border: from the end of its upper edge on."""
    hull = cv2.convexHull(points, clockwise=False).reshape(-1, 2)
    top = np.flatnonzero(hull[:, 1] == hull[:, 1].min())
    return np.roll(hull, -top[hull[top, 0].argmax()], axis=0)


def rectangles(post):
    for seed in range(80):
        noise = Noise(seed + 500)
        reach = [6, 20, 200, 900][seed % 4]
        points = np.array([[noise.below(reach), noise.below(reach)] for _ in range(1 + noise.below(14))], np.int32)
        points = as_border(points)
        box, side = post.get_mini_boxes(points.reshape(-1, 1, 2))
        yield {"points": points.tolist(), "corners": floats(box), "side": float(side)}


def turned(noise):
    """The corners of a turned rectangle, as get_mini_boxes gives them."""
    angle = noise.below(90) - 45
    size = (20 + noise.below(200), 4 + noise.below(30))
    center = (150 + noise.below(60) / 8, 150 + noise.below(60) / 8)
    return np.array(sorted(cv2.boxPoints((center, size, angle)).tolist()), np.float32)


def offsets(post):
    for seed in range(60):
        noise = Noise(seed + 900)
        box, _ = post.get_mini_boxes(turned(noise).reshape(-1, 1, 2))
        if seed % 5 == 0:
            box = np.round(box)
        grown, side = post.get_mini_boxes(post.unclip(box))
        yield {"box": floats(box), "corners": floats(grown), "side": float(side)}


def scores(post):
    width, height = 120, 90
    for seed in range(60):
        noise = Noise(seed + 1300)
        box = np.array([[noise.below(width * 8) / 8, noise.below(height * 8) / 8] for _ in range(4)], np.float32)
        box, _ = post.get_mini_boxes(box.reshape(-1, 1, 2))
        values = Noise(seed).bytes(width * height).reshape(height, width) / np.float32(255)
        inside = bool((box >= 0).all() and (box < [width - 1, height - 1]).all())
        yield {"seed": seed, "box": floats(box), "inside": inside, "score": float(post.box_score_fast(values, box))}


def probabilities(seed, width, height):
    """Slanted bars of high probability, some with holes, under noise."""
    noise = Noise(seed)
    values = np.zeros((height, width), np.int64)
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    for _ in range(4 + noise.below(6)):
        left, top = noise.below(width), noise.below(height)
        run, rise = 20 + noise.below(60), noise.below(17) - 8
        along = (x - left) * run + (y - top) * rise
        across = (y - top) * run - (x - left) * rise
        length, half = run * run + rise * rise, (3 + noise.below(6)) * run
        inside = (along >= 0) & (along <= length) & (np.abs(across) <= half)
        hole = (along * 2 >= length) & (along * 4 <= length * 3) & (np.abs(across) * 2 <= half)
        values[inside] = 150 + noise.below(90)
        if noise.below(3) == 0:
            values[hole] = 20
    values += noise.bytes(width * height).reshape(height, width) % 48
    return np.clip(values, 0, 255).astype(np.uint8)


def maps(reader):
    for seed in range(16):
        width, height = [(160, 96), (224, 128), (96, 160), (320, 320)][seed % 4]
        page = [(320, 192), (224, 128), (300, 501), (333, 321)][seed % 4]
        values = probabilities(seed + 7, width, height)
        detector = reader.text_det
        boxes, found = detector.postprocess_op((values / np.float32(255))[None, None], page[::-1])
        boxes = detector.filter_tag_det_res(boxes, page[::-1])
        boxes = reader.sorted_boxes(boxes) if len(boxes) else []
        yield {
            "seed": seed + 7, "size": [width, height], "page": page, "map": sha(values),
            "boxes": [np.asarray(box).astype(int).tolist() for box in boxes],
        }


def orders(reader):
    for seed in range(8):
        noise = Noise(seed + 40)
        corners = [[noise.below(120), noise.below(60)] for _ in range(12)]
        boxes = np.array([[[x, y], [x + 5, y], [x + 5, y + 5], [x, y + 5]] for x, y in corners], np.float32)
        ordered = [[int(box[0][0]), int(box[0][1])] for box in reader.sorted_boxes(boxes)]
        yield {"corners": corners, "ordered": ordered}


def pages(reader):
    sizes = [
        (640, 480), (480, 640), (2500, 1200), (1200, 2500), (1, 1), (20, 20), (29, 40), (30, 30), (31, 300), (400, 40),
        (400, 30), (3000, 300), (1999, 2001), (736, 736), (735, 737), (100, 29), (752, 752), (300, 21),
    ]
    for width, height in sizes:
        picture = np.zeros((height, width, 3), np.uint8)
        page, ratio_high, ratio_wide = reader.preprocess(picture)
        inner = page.shape[1::-1]
        page, record = reader.maybe_add_letterbox(page, {"preprocess": {"ratio_h": ratio_high, "ratio_w": ratio_wide}})
        values = reader.text_det.get_preprocess(max(page.shape[:2]))(page)
        high, wide = page.shape[:2]
        corners = np.array([[[1, 2], [wide - 1, 2], [wide - 1, high - 1], [0, high - 1]]], np.float32)
        origin = reader._get_origin_points(corners, record, height, width)
        yield {
            "size": [width, height], "resized": inner, "page": page.shape[1::-1], "input": values.shape[:1:-1],
            "corners": corners.astype(int).tolist()[0], "origin": floats(origin),
        }


def lines(reader):
    for width, height in [(1, 48), (100, 48), (320, 48), (321, 48), (500, 31), (33, 20), (900, 17), (4, 4), (700, 105)]:
        picture = Noise(width + height).picture(width, height)
        recognizer, classifier = reader.text_rec, reader.text_cls
        values = recognizer.resize_norm_img(picture, max(320 / 48, width / height))
        turned = classifier.resize_norm_img(picture)
        yield {
            "size": [width, height], "line": [values.shape[2], values.shape[1]], "values": sha(values),
            "turned": sha(turned),
        }


def labels(reader):
    decode = reader.text_rec.postprocess_op
    for seed in range(6):
        noise = Noise(seed + 70)
        steps, classes = 3 + noise.below(20), 6
        values = (noise.bytes(steps * classes) % 5).reshape(1, steps, classes) / np.float32(8)
        characters, decode.character = decode.character, ["blank", "a", "b", "é", "字", " "]
        ((text, score),) = decode(values)
        decode.character = characters
        yield {"seed": seed + 70, "steps": steps, "text": text, "score": score}


def detector_values():
    every = np.arange(256, dtype=np.uint8).repeat(3).reshape(1, 256, 3)
    normal = DetPreProcess()
    return sha(normal.normalize(every).astype(np.float32)[0, :, 0].copy())


def main():
    reader = RapidOCR()
    post = DBPostProcess(0.3, 0.5, 1000, 1.6, "fast", True)
    made = {
        "resized": list(resized()), "crops": list(crops(reader)),
        "contours": list(contours()), "rectangles": list(rectangles(post)), "offsets": list(offsets(post)),
        "scores": list(scores(post)), "maps": list(maps(reader)), "orders": list(orders(reader)),
        "pages": list(pages(reader)), "lines": list(lines(reader)), "labels": list(labels(reader)),
        "detector_values": detector_values(),
    }
    parts = []
    for name, cases in made.items():
        if isinstance(cases, list):
            rows = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
            parts.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(cases)}")
    Path(__file__).with_name("peer.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


main()
