"""How long pages take: isovec beside rapidocr, page by page by turns, in one process on one ONNX Runtime.

    python -m venv venv && venv/bin/pip install rapidocr-onnxruntime==1.4.4 onnxruntime==1.31.1 isovec
    venv/bin/pip uninstall -y opencv-python && venv/bin/pip install opencv-python-headless==4.10.0.84
    venv/bin/python tests/data/pages/make.py PAGES 56
    venv/bin/python benches/ocr/measure.py PAGES NETWORKS [ROUNDS]

NETWORKS is the folder of PP-OCR's files (`cargo xtask setup ocr`). rapidocr reads lines one by one, as isovec does, and six together,
which is its default. Each reads every page once before it is timed; a page's time is the median of ROUNDS (3).
"""

import json
import statistics
import sys
import time
from pathlib import Path

import isovec
from rapidocr_onnxruntime import RapidOCR

pages, networks, *more = sys.argv[1:]
rounds = int(more[0]) if more else 3
files = sorted(Path(pages).glob("*.png"))

reader = isovec.TextReader(networks, config={"engine": "onnxruntime"})
one, six = RapidOCR(rec_batch_num=1), RapidOCR()
READERS = {
    "isovec": lambda page: [line.text for line in reader.read([page])[0].lines],
    "rapidocr, lines one by one": lambda page: [text for _, text, _ in one(str(page))[0] or []],
    "rapidocr, six lines together": lambda page: [text for _, text, _ in six(str(page))[0] or []],
}

times = {name: [] for name in READERS}
differ = 0
for page in files:
    texts = {name: read(page) for name, read in READERS.items()}
    differ += texts["isovec"] != texts["rapidocr, lines one by one"]
    taken = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, read in READERS.items():
            started = time.perf_counter()
            read(page)
            taken[name].append(time.perf_counter() - started)
    for name, all_times in taken.items():
        times[name].append(statistics.median(all_times))

started = time.perf_counter()
reader.read(files)
print(json.dumps({"reader": "isovec, all pages in one call", "seconds": round(time.perf_counter() - started, 2)}))
ours = times["isovec"]
for name, all_times in times.items():
    ratio = statistics.median(own / other for own, other in zip(ours, all_times))
    print(json.dumps({"reader": name, "pages": len(files), "seconds": round(sum(all_times), 2), "isovec to it, median": round(ratio, 3)}))
print(json.dumps({"pages with other texts": differ, "isovec": isovec.__version__, "provider": reader.provider}))
