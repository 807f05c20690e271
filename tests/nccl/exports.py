#!/usr/bin/python3
"""libtutti_nccl.so exports what NCCL's header declares: exports.py SOURCE_DIR LIBRARY INCLUDE_DIR [--write]

Every function of nccl.h must be exported, and src/nccl/exports.txt must list what nm finds in the library. What is
exported and not in nccl.h must at least be in nccl_device.h. --write writes the list anew, from the library.
"""
import re
import subprocess
import sys
from pathlib import Path

DECLARATION = re.compile(r"\b(p?nccl[A-Z]\w*)\s*\(")


def declared(headers):
    names = set()
    for header in headers:
        text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*|\"[^\"\n]*\"", " ", header.read_text(), flags=re.DOTALL | re.MULTILINE)
        names |= set(DECLARATION.findall(text))
    return names


def main():
    source, library, include = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    symbols = subprocess.run(["nm", "--dynamic", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True)
    has = {line.split()[-1] for line in symbols.stdout.splitlines()}
    listed_in = source / "src/nccl/exports.txt"
    if sys.argv[4:] == ["--write"]:
        listed_in.write_text("".join(name + "\n" for name in sorted(has)))
    lines = listed_in.read_text().splitlines()
    listed, functions = set(lines), declared([include / "nccl.h"])
    for_kernels = declared((include / "nccl_device").rglob("*.h"))
    for_kernels |= {"p" + name for name in for_kernels}
    wrong = [f"nccl.h declares it, and it is not exported: {name}" for name in sorted(functions - has)]
    wrong += [f"exported, and NCCL does not declare it: {name}" for name in sorted(has - functions - for_kernels)]
    wrong += [f"exported, and src/nccl/exports.txt does not list it: {name}" for name in sorted(has - listed)]
    wrong += [f"src/nccl/exports.txt lists it, and it is not exported: {name}" for name in sorted(listed - has)]
    if lines != sorted(listed):
        wrong.append("src/nccl/exports.txt is not sorted, or has a name twice")
    print("\n".join(wrong + [f"{len(functions)} functions of nccl.h, {len(has)} names"]))
    sys.exit(bool(wrong))


main()
