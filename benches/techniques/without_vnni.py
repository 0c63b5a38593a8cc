"""A copy of ONNX Runtime's library that computes as on a processor without VNNI, for benchmarks.

    python benches/techniques/without_vnni.py libonnxruntime.so without-vnni.so
    python benches/techniques/run.py MODEL --ort without-vnni.so ...

ONNX Runtime has no option for it. Its kernels ask the processor (CPUID, leaf 7) whether it has VNNI, and the answer is tested by an
instruction with the bit as an operand. The copy has 0 in its place: the answer is always no. `--avx2` makes that of AVX-512 no as well.
Without VNNI two products of bytes are added in 16 bits, which saturates: the cosines of models in int8 are others, too.

The instructions are found by their bytes, as GCC writes them for x86-64 (1.31.1's library for Linux was tried). A library where they
are not found, or not equally often, is refused. Do not ship such a copy.
"""

import argparse
import re
import sys
from pathlib import Path

# Where the platform's kernels are chosen: leaf 7, subleaf 1, and a test of AVX-VNNI. The compiler has several copies of it.
CHOICE = re.compile(rb"\xb8\x07\x00\x00\x00\xb9\x01\x00\x00\x00\x0f\xa2\xa8(\x10)", re.DOTALL)
# How far behind that the other tests are, at most.
REACH = 0x400
# `and reg, 0x800`, bit 11 of ECX: AVX512_VNNI.
AVX512_VNNI = re.compile(rb"\x81[\xe0-\xe7](\x00\x08\x00\x00)", re.DOTALL)
# `test dl, 0x10`, bit 4 of the subleaf's EDX: AVX-VNNI-INT8.
AVX_VNNI_INT8 = re.compile(rb"\xf6\xc2(\x10)", re.DOTALL)
# `and reg, 0x3000000`, bits 24 and 25 of the inverted EDX: AMX, which a processor without VNNI has not. `or` in its place is never 0.
AMX = re.compile(rb"\x81([\xe0-\xe7])\x00\x00\x00\x03", re.DOTALL)
# `test reg, 0x10000`, bit 16 of EBX: AVX512F.
AVX512F = re.compile(rb"\xf7[\xc0-\xc7](\x00\x00\x01\x00)", re.DOTALL)


def without_vnni(library, avx2=False):
    """The library's bytes with the changes, and how many places changed."""
    changed = bytearray(library)
    choices = list(CHOICE.finditer(library))
    if not choices:
        raise ValueError("no test of AVX-VNNI behind CPUID was found: the library is of another compiler, processor or version")
    wanted = {"AVX512_VNNI": AVX512_VNNI, "AVX-VNNI-INT8": AVX_VNNI_INT8, "AMX": AMX} | ({"AVX512F": AVX512F} if avx2 else {})
    for choice in choices:
        changed[choice.start(1)] = 0
        for name, pattern in wanted.items():
            tests = list(pattern.finditer(library, choice.end(), choice.end() + REACH))
            if len(tests) != 1:
                raise ValueError(f"{len(tests)} tests of {name} in place of 1 were found behind the test at {choice.start():#x}")
            (test,) = tests
            # From `and` (modrm /4) to `or` (/1).
            value = bytes([test[1][0] - 0x18]) if pattern is AMX else bytes(len(test[1]))
            changed[test.start(1) : test.end(1)] = value
    return bytes(changed), len(choices) * (1 + len(wanted))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("copy", type=Path)
    parser.add_argument("--avx2", action="store_true", help="without AVX-512 as well")
    asked = parser.parse_args()
    if asked.copy.exists():
        parser.error(f"{asked.copy} exists already")
    try:
        copy, places = without_vnni(asked.library.read_bytes(), asked.avx2)
    except ValueError as error:
        sys.exit(f"{asked.library}: {error}")
    asked.copy.write_bytes(copy)
    print(f"{asked.copy}: {places} tests changed")


if __name__ == "__main__":
    main()
