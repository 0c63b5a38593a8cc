"""Cuts the benchmarks' corpus out of a package's documentation: the prose of every docstring, by
paragraph and whole, without code, tables of dashes and repetitions.

Usage: cut.py FOLDER, an unpacked wheel. Writes one text a line, in the order of the texts' SHA-256:
shuffled, and the same everywhere."""

import ast
import hashlib
import re
import sys
from pathlib import Path

RULE = re.compile(r"[-=~^.*+# ]+")


def docstrings(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring


def prose(docstring):
    """Paragraphs, each on one line; code is left out."""
    for paragraph in re.split(r"\n[ \t]*\n", docstring):
        if ">>>" in paragraph or "::" in paragraph:
            continue
        lines = (line.strip() for line in paragraph.splitlines())
        text = " ".join(" ".join(line.split()) for line in lines if line and not RULE.fullmatch(line))
        if any(letter.isalpha() for letter in text):
            yield text


def main():
    folder = Path(sys.argv[1])
    texts = set()
    for path in folder.rglob("*.py"):
        if "tests" in path.relative_to(folder).parts:
            continue
        for docstring in docstrings(path.read_text(encoding="utf-8")):
            paragraphs = list(prose(docstring))
            texts.update(paragraphs)
            texts.add(" ".join(paragraphs))
    texts.discard("")
    ordered = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
    sys.stdout.buffer.write("".join(f"{text}\n" for text in ordered).encode())


main()
