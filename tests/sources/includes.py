#!/usr/bin/python3
"""Includes go one way, between rooms and within them: includes.py SOURCE_DIR

A room is a folder with one trade. ROOMS says which others each may use, for its headers and its sources alike. No
headers include each other in a circle. Nor do units, a header with the source of its name: each can be read, and
tested, once what it includes is known. CYCLES are those that there still are.
"""
import re
import sys
from pathlib import Path

TYPES = "include/tutti/types.h include/tutti/error.h"
PUBLIC = "include/tutti"

# What a room may include besides itself: rooms, or single headers of them.
ROOMS = {
    "include/tutti": "",
    "src/base": PUBLIC,
    "src/types": PUBLIC,
    "src/topology": "include/tutti/error.h",
    "src/memory": "",
    "src/reduce": f"{TYPES} include/tutti/operator.h src/types src/memory",
    "src/cuda": f"{TYPES} src/types/kinds.h src/reduce",
    "src/schedule": f"{PUBLIC} src/types",
    "src/collectives": f"{PUBLIC} src/types src/schedule",
    "src/transport": f"{PUBLIC} src/base src/types src/memory src/topology",
    "src/net": f"{PUBLIC} src/base",
    "src/control": f"{PUBLIC} src/base src/types src/topology src/net src/transport/registry.h",
    "src/selection": f"{PUBLIC} src/types src/schedule src/collectives",
    "src/executor": f"{PUBLIC} src/types src/memory/copy.h src/memory/between_cores.h src/schedule src/collectives "
                    "src/reduce src/cuda src/transport",
    "src/staging": f"{TYPES} src/types src/memory src/cuda src/executor",
    "src/runtime": f"{PUBLIC} src/base src/types src/topology src/memory src/reduce/float_environment.h src/reduce/scale.h "
                   "src/reduce/custom.h src/schedule src/cuda src/transport src/control src/selection src/executor src/staging",
    "src/c": f"{PUBLIC} src/base src/net src/control src/runtime",
    "src/nccl": "include/tutti/tutti.h",
    "src/trainer": PUBLIC,
    "src/trainer/cuda": f"{PUBLIC} src/trainer src/cuda/memory.h src/cuda/stream.h src/cuda/check.h",
    # The program, which is on top of everything. What its commands have in common is in `machine` and `run`.
    "tools/tutti/machine": "src include tools/tutti/command.h",
    "tools/tutti/run": "src include tools/tutti/command.h tools/tutti/machine",
    "tools/tutti/bench": "src include tools/tutti/command.h tools/tutti/machine tools/tutti/run",
    "tools/tutti/plan": "src include tools/tutti/command.h",
    "tools/tutti/tune": "src include tools/tutti/command.h tools/tutti/machine tools/tutti/run tools/tutti/bench "
                        "tools/tutti/plan",
    "tools/tutti/doctor": "src include tools/tutti/command.h tools/tutti/machine",
    "tools/tutti/status": "src include tools/tutti/command.h",
    "tools/tutti/train": "src include tools/tutti/command.h tools/tutti/machine tools/tutti/run",
    "tools/tutti": "include src/net/handshake.h",
}
# Units that need each other, by room. One that is taken apart leaves this list; none comes in.
CYCLES = []
ROOTS = ("include", "src", "tools/tutti")  # where the compiler looks
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
SUFFIXES = (".h", ".cuh", ".cc", ".cu")


def room_of(path):
    """The longest room that the file lies in, or None."""
    return max((room for room in ROOMS if path.startswith(room + "/")), key=len, default=None)


def unit_of(path):
    return path.rsplit(".", 1)[0]


def cycles_of(graph):
    """The strongly connected components of more than one node (Tarjan, SIAM J. Comput. 1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            component, stack[at:] = stack[at:], []
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def main():
    root = Path(sys.argv[1])
    files = sorted(str(path.relative_to(root)) for folder in ROOTS for path in (root / folder).rglob("*")
                   if path.suffix in SUFFIXES)
    known = set(files)
    wrong = False
    units, headers = {}, {}
    for path in files:
        room = room_of(path)
        if room is None:
            print(f"{path}: no room of {sys.argv[0]} has it")
            wrong = True
            continue
        may = ROOMS[room].split()
        for name in INCLUDE.findall((root / path).read_text()):
            target = next((f"{start}/{name}" for start in ROOTS if f"{start}/{name}" in known), None)
            if target is None:
                continue  # the system's, or a library's
            if unit_of(path) != unit_of(target):
                units.setdefault(unit_of(path), set()).add(unit_of(target))
            if path.endswith((".h", ".cuh")):
                headers.setdefault(path, set()).add(target)
            # A room below another, tools/tutti/run, say, is not part of that.
            other = room_of(target)
            if other != room and not any(
                    target == allowed or other == allowed or (allowed not in ROOMS and target.startswith(allowed + "/"))
                    for allowed in may):
                print(f"{path} includes {name}: {room} may include {ROOMS[room] or 'nothing of ours'}")
                wrong = True
    for cycle in cycles_of(headers):
        print("Headers that include each other: " + ", ".join(cycle))
        wrong = True
    cycles = []
    for cycle in cycles_of(units):
        room = room_of(cycle[0])
        cycles.append(f"{room}: " + " ".join(unit.removeprefix(room + "/") for unit in cycle))
    for cycle in sorted(set(cycles) ^ set(CYCLES)):
        print(f"Units that need each other, {'a new cycle' if cycle in cycles else 'no more: take it off the list'}: {cycle}")
        wrong = True
    print(f"{len(files)} files in {len(ROOMS)} rooms")
    sys.exit(wrong)


main()
