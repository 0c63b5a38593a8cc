"""Each technique of `isovec optimize` on one model, on both engines and in a page: bytes, quality, milliseconds and how many times as fast.

    python benches/techniques/run.py MODEL --isovec isovec --texts others.txt --calibrate mine.txt --page
    python benches/techniques/run.py MODEL --isovec isovec --images PHOTOS --page
    python benches/techniques/without_vnni.py libonnxruntime.so without-vnni.so
    python benches/techniques/run.py MODEL --isovec isovec --texts others.txt --engines onnxruntime --ort without-vnni.so

Quality and speed are those of the report, quality by the first engine: both models are loaded at the same time and take turns, here with
`--threads 1`. Milliseconds are of a text or picture, many in one call, of the original and of what was made. The median quotient counts, and
the least and the greatest stand beside it. Those of a page are measured in the same way by page.mjs, which says what it needs.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

OF_ALL = {
    "passes, extended": ["--level", "extended"],
    "f16": ["--dtype", "f16"],
    "int8 static, f16": ["--int8", "static", "--dtype", "f16"],
    "int8 static in 7 bits, f16": ["--int8", "static", "--seven-bits", "--dtype", "f16"],
    "pruned by 10%": ["--prune", "10%"],
    "pruned by 10%, int8 static, f16": ["--prune", "10%", "--int8", "static", "--dtype", "f16"],
}
OF_TEXTS = {
    "int8 weights": ["--dtype", "int8"],
    "int8 dynamic, f16": ["--int8", "dynamic", "--dtype", "f16"],
    "4 bits, f16": ["--int4", "--dtype", "f16"],
    "static, 256 components, int8": ["--static", "256", "--dtype", "int8"],
}
CALIBRATED = ["--int8", "--prune", "--int4"]


PAGE = Path(__file__).parent / "page.mjs"


def last_line(errors):
    lines = [line for line in errors.strip().splitlines() if "XDG" not in line]
    return (lines or ["it failed"])[-1]


def report(asked, options, engine, folder):
    command = [asked.isovec, "optimize", "--model", asked.model, "--out", folder, "--engine", engine, "--threads", "1", "--json", *options]
    if asked.images:
        command += ["--images", asked.images]
    else:
        command += ["--texts", asked.texts]
        if asked.calibrate and any(option in CALIBRATED for option in options):
            command += ["--calibrate", asked.calibrate]
    library = {"ORT_DYLIB_PATH": str(asked.ort.resolve())} if asked.ort else {}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=os.environ | library)
    return last_line(done.stderr) if done.returncode else json.loads(done.stdout)


def in_page(asked, folder):
    """The cell of a folder's times in a page."""
    items = ["--images", asked.images] if asked.images else ["--texts", asked.texts]
    command = ["node", PAGE, asked.model, folder, "--json", *items]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        return next((line for line in done.stderr.splitlines() if "Error" in line), "it failed")
    (result,) = json.loads(done.stdout)["results"]
    if "refused" in result:
        return f"refused: {result['refused']}"
    build = "" if result["build"] == result["of"] else f", {result['build']}"
    return f"{times(result['together'])}{build}"


def times(speed):
    """Of milliseconds: before, after, and how many times as fast."""
    least, most = speed["between"]
    return f"{speed['before']:.3g} to {speed['after']:.3g} ms, {speed['times']:.2f} ({least:.2f} to {most:.2f})"


def milliseconds(speed):
    """Those of a report, which has texts a second."""
    return speed | {"before": 1000 / speed["before"], "after": 1000 / speed["after"]}


def shown(value, digits=4):
    return "" if value is None else f"{value:.{digits}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--isovec", required=True)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--calibrate", type=Path)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--engines", nargs="+", default=["onnxruntime", "portable"])
    parser.add_argument("--ort", type=Path, help="ONNX Runtime's library")
    parser.add_argument("--page", action="store_true", help="in a page as well")
    parser.add_argument("--only", nargs="*", default=[], help="techniques by their names")
    parser.add_argument("--leave-out", nargs="*", default=[], help="techniques by their names")
    asked = parser.parse_args()
    if asked.model.is_dir():
        asked.model = asked.model.resolve()
    if bool(asked.texts) == bool(asked.images):
        parser.error("give texts or pictures")
    techniques = OF_ALL | ({} if asked.images else OF_TEXTS)
    unknown = set(asked.only + asked.leave_out) - set(techniques)
    if unknown:
        parser.error(f"no techniques of this model: {', '.join(sorted(unknown))}")
    places = asked.engines + ["page"] * asked.page
    print(f"| {asked.model.name} | files | cosine, worst and mean | recall@10 | {' | '.join(places)} |")
    print("|---|---|---|---|" + "---|" * len(places))
    for name, options in techniques.items():
        if name in asked.leave_out or (asked.only and name not in asked.only):
            continue
        cells, told, page = [], None, "refused"
        for engine in asked.engines:
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
                folder = Path(place) / "made"
                made = report(asked, options, engine, folder)
                if isinstance(made, str):
                    cells.append(f"refused: {made}")
                    continue
                cells.append(times(milliseconds(made["speed"])))
                if asked.page and told is None:
                    page = in_page(asked, folder)
                told = told or made
        cells += [page] * asked.page
        size = quality = recall = ""
        if told is not None:
            size = f"{told['bytes'] / 1e6:.1f} MB"
            quality = ", ".join(filter(None, [shown(told["quality"]["cosine_worst"]), shown(told["quality"]["cosine_mean"])]))
            recall = shown(told["quality"]["recall_at_10"], 3)
        print(f"| {name} | {size} | {quality} | {recall} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
