"""Each technique of `isovec optimize` on one model, on both engines: bytes, quality and speed, as its own report has them.

    python benches/techniques/run.py MODEL --isovec isovec --texts others.txt --calibrate mine.txt
    python benches/techniques/run.py MODEL --isovec isovec --images PHOTOS

Speeds are those of the report: both models are loaded at the same time and take turns, here with `--threads 1`. The median quotient counts,
and the least and the greatest stand beside it.
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


def report(asked, options, engine, folder):
    command = [asked.isovec, "optimize", "--model", asked.model, "--out", folder, "--engine", engine, "--threads", "1", "--json", *options]
    if asked.images:
        command += ["--images", asked.images]
    else:
        command += ["--texts", asked.texts]
        if asked.calibrate and any(option in CALIBRATED for option in options):
            command += ["--calibrate", asked.calibrate]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if "XDG" not in line]
        return (lines or ["it failed"])[-1]
    return json.loads(done.stdout)


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
    parser.add_argument("--leave-out", nargs="*", default=[], help="techniques by their names")
    asked = parser.parse_args()
    if bool(asked.texts) == bool(asked.images):
        parser.error("give texts or pictures")
    techniques = OF_ALL | ({} if asked.images else OF_TEXTS)
    print(f"| {asked.model.name} | files | cosine, worst and mean | recall@10 | times as fast: {', '.join(asked.engines)} |")
    print("|---|---|---|---|---|")
    for name, options in techniques.items():
        if name in asked.leave_out:
            continue
        speeds, told = [], None
        for engine in asked.engines:
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
                made = report(asked, options, engine, Path(place) / "made")
            if isinstance(made, str):
                speeds.append(f"refused: {made}")
                continue
            told = told or made
            speed = made["speed"]
            speeds.append(f"{speed['times']:.2f} ({speed['between'][0]:.2f} to {speed['between'][1]:.2f})")
        if told is None:
            print(f"| {name} | | | | {', '.join(speeds)} |", flush=True)
            continue
        quality = told["quality"]
        cosines = ", ".join(filter(None, [shown(quality["cosine_worst"]), shown(quality["cosine_mean"])]))
        size = told["bytes"] / 1e6
        print(f"| {name} | {size:.1f} MB | {cosines} | {shown(quality['recall_at_10'], 3)} | {', '.join(speeds)} |", flush=True)


if __name__ == "__main__":
    main()
