"""Writes pages of text, and what rapidocr 1.4.4 reads of them, for tests/whole/reading.rs.

    python -m venv venv && venv/bin/pip install rapidocr-onnxruntime==1.4.4 onnxruntime==1.31.1
    venv/bin/pip uninstall -y opencv-python && venv/bin/pip install opencv-python-headless==4.10.0.84
    venv/bin/python make.py                    # the pages of the repository
    venv/bin/python make.py FOLDER 60          # as many others, for ISOVEC_OCR_PAGES=FOLDER
    venv/bin/python make.py FOLDER 60 chinese  # the same in Chinese

Fonts are DejaVu's, and for Chinese WenQuanYi Micro Hei (Debian: fonts-wqy-microhei). Pages differ in size, font, colors, rotation, noise and blur. rapidocr reads every line by itself
(`rec_batch_num` 1), as isovec does; how many lines it reads otherwise in its default of six together is printed.
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from rapidocr_onnxruntime import RapidOCR

assert cv2.__version__ == "4.10.0", cv2.__version__

FONTS = Path("/usr/share/fonts/truetype/dejavu")
NAMES = ["DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "DejaVuSans-Bold", "DejaVuSerif-Italic", "DejaVuSansCondensed"]
WORDS = """the invoice number of March was paid in full on Tuesday and its total comes to 1,284.50 including tax; please keep
this receipt for your records Ref AX-7731 Room 12 opens at 08:30 (weekdays) with coffee, tea & cake for 3.20 each North Street
45 Berlin 10115 call +49 30 901820 or write to office@example.org Version 2.0 beta weights 75 kg width 210 mm page 7 of 19""".split()
CHINESE_FONT = Path("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc")
CHINESE = """三月的发票 已于 星期二 全额付清 总计 1,284.50 元 （含税） 请 保留 此收据 编号 AX-7731 十二号房间 08:30 开门 咖啡、茶 和 蛋糕
每份 3.20 欧元 北街 45 号 电话 +49 30 901820 版本 2.0 测试版 重量 75 公斤 宽度 210 毫米 第七页 共十九页 欢迎光临 谢谢惠顾 今日天气 晴转多云 注意安全""".split()


def sentence(random, chinese):
    if chinese:
        return "".join(random.choice(CHINESE, random.integers(2, 7)))
    return " ".join(random.choice(WORDS, random.integers(2, 9)))


def font(random, size, chinese):
    path = CHINESE_FONT if chinese else FONTS / f"{random.choice(NAMES)}.ttf"
    return ImageFont.truetype(str(path), size)


def page(seed, widest=1100, highest=800, chinese=False):
    """A page, and how it was made."""
    random = np.random.default_rng(seed)
    width, height = int(random.integers(260, widest)), int(random.integers(140, highest))
    dark = random.random() < 0.2
    paper, ink = ((24, 28, 40), (235, 235, 225)) if dark else ((250, 249, 244), tuple(int(c) for c in random.integers(0, 90, 3)))
    image = Image.new("RGB", (width, height), paper)
    draw = ImageDraw.Draw(image)
    y = int(random.integers(8, 40))
    while y < height - 30:
        size = int(random.integers(14, 40))
        drawn = font(random, size, chinese)
        draw.text((int(random.integers(8, 60)), y), sentence(random, chinese), ink, drawn)
        y += size + int(random.integers(6, 40))
    kind = ["plain", "turned", "noise", "blur", "tilted", "stood on its head", "on its side"][seed % 7]
    if kind in ("turned", "tilted"):
        angle = float(random.uniform(-4, 4) if kind == "tilted" else random.uniform(-25, 25))
        image = image.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=paper)
    if kind == "noise":
        pixels = np.asarray(image).astype(float) + random.normal(0, random.uniform(5, 25), (height, width, 3))
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    if kind == "blur":
        image = image.filter(ImageFilter.GaussianBlur(float(random.uniform(0.5, 1.5))))
    if kind == "stood on its head":
        image = image.rotate(180)
    if kind == "on its side":
        image = image.rotate(90, expand=True)
    return image, kind


def empty():
    """What has no text: white, one pixel, and a slope."""
    slope = np.tile(np.linspace(0, 255, 300).astype(np.uint8), (200, 1))
    return [
        (Image.new("RGB", (400, 300), "white"), "white"),
        (Image.new("RGB", (1, 1), "black"), "one pixel"),
        (Image.fromarray(np.stack([slope] * 3, -1)), "slope"),
    ]


def lines(result):
    found, _ = result
    return [{"corners": corners, "text": text, "score": score} for corners, text, score in found or []]


def main():
    folder, count = (Path(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (Path(__file__).parent, 0)
    chinese = sys.argv[3:] == ["chinese"]
    folder.mkdir(parents=True, exist_ok=True)
    alone, together = RapidOCR(rec_batch_num=1), RapidOCR()
    assert alone.text_rec.rec_batch_num == 1
    made = [page(1000 + seed, chinese=chinese) for seed in range(count)] if count else [page(seed, 460, 220) for seed in range(7)] + empty() + [page(7, 460, 220, chinese=True)]
    pages, differ = [], 0
    for number, (image, kind) in enumerate(made):
        name = f"{number:03}.png"
        if count == 0:
            # The repository is to stay small.
            image = image.quantize(24).convert("RGB")
        image.save(folder / name, optimize=True)
        pixels = cv2.cvtColor(np.asarray(image), cv2.COLOR_RGB2BGR)
        read, usual = lines(alone(pixels)), lines(together(pixels))
        differ += sum(one["text"] != other["text"] for one, other in zip(read, usual)) + abs(len(read) - len(usual))
        pages.append({"file": name, "kind": kind, "size": image.size, "lines": read})
    rows = ",\n".join(json.dumps(page, ensure_ascii=False) for page in pages)
    (folder / "rapidocr.json").write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    print(f"{len(pages)} pages, {sum(len(page['lines']) for page in pages)} lines, {differ} of them another text among six lines")


main()
