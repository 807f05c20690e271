#!/usr/bin/env python3
"""docs/reference/algorithms.md holds: the formulas of each section are so. algorithms.py SOURCE_DIR TUTTI

Messages, bytes, rounds and what crosses between hosts are what the algorithms' files claim, which collectives_test
holds against the schedules. A time is an upper bound of the price, and not more than five times as
much, for alpha, beta and gamma each by itself.
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

source, tutti = pathlib.Path(sys.argv[1]), sys.argv[2]
wrong = []
BYTES = 1 << 20
# Prices where only one of the three costs something: microseconds a message, a byte sent, a byte combined.
PARAMETERS = {"alpha": (1, 0, 0), "beta": (0, 1, 0), "gamma": (0, 0, 1)}


def table(alpha, beta, gamma):
    lines = ["tutti table 1"]
    for size in (0, BYTES):
        us = alpha + beta * size
        lines += [f"{link} {size} {us} {us / 2}" for link in ("shm", "tcp")] + [f"reduce {size} {gamma * size}"]
    return "\n".join(lines) + "\n"


def evaluate(formula, **letters):
    """As tests/collectives/formula.h: products also by juxtaposition."""
    tokens = re.findall(r"log n|[a-zM]+|[0-9]+|[-+*/()]", formula)
    if "".join(tokens).replace(" ", "") != formula.replace(" ", ""):
        raise ValueError(f"not a formula: {formula}")
    text = ""
    for before, token in zip([""] + tokens, tokens):
        value = {"log n": "L"}.get(token, token)
        text += ("*" if before and before not in "+-*/(" and token not in "+-*/)" else "") + value
    return eval(text, {"L": math.ceil(math.log2(letters["n"]))}, letters)  # only letters, numbers and operators


def price(collective, algorithm, ranks, hosts, chunks, path):
    words = [tutti, "plan", algorithm, "--collective", collective, "-n", str(ranks), "--hosts", str(hosts), "--chunks",
             str(chunks), "--bytes", str(BYTES), "--cost", "--json", "--table", path]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])["us"]


def check_time(name, formulas, pipelined):
    collective, algorithm = name.split("/")
    of_hosts = algorithm == "hierarchical"
    for ranks, hosts, chunks in ((2, 1, 1), (5, 1, 1), (8, 1, 1), (8, 1, 4), (13, 1, 1), (8, 2, 1), (8, 2, 4)):
        if (hosts > 1 and not of_hosts) or (chunks > 1 and not pipelined):
            continue
        formula = formulas[0] if ranks & (ranks - 1) == 0 else formulas[-1]
        for parameter, path in tables.items():
            letters = {"n": ranks, "h": hosts, "g": ranks // hosts, "c": chunks, "M": 0 if collective == "barrier" else BYTES,
                       "alpha": 0, "beta": 0, "gamma": 0, parameter: 1}
            bound = evaluate(formula, **letters)
            us = price(collective, algorithm, ranks, hosts, chunks, path)
            if collective == "barrier":
                us = us if parameter == "alpha" else 0
            copies = BYTES if parameter == "gamma" else 0  # which the page leaves out
            if us > (bound + copies) * 1.001 or us * 5 < bound:
                wrong.append(f"{name}: {formula} is {bound:g} for {letters}, the price is {us:g}")


with tempfile.TemporaryDirectory() as folder:
    tables = {}
    for parameter, costs in PARAMETERS.items():
        tables[parameter] = f"{folder}/{parameter}"
        pathlib.Path(tables[parameter]).write_text(table(*costs))

    page = (source / "docs/reference/algorithms.md").read_text()
    sections = {match[1]: match[2] for match in re.finditer(r"^### (\S+)\n(.*?)(?=^##|\Z)", page, re.M | re.S)}
    files = {f"{path.parent.name}/{path.stem}": path for path in (source / "src/collectives").glob("*/*.cc")}
    for name in sorted(files.keys() - sections.keys()):  # `tutti plan --list` has it all the same
        print(f"not on the page yet: {name}")
    wrong += [f"there is no file of {name}" for name in sorted(sections.keys() - files.keys())]
    for name in sorted(files.keys() & sections.keys()):
        head, section = files[name].read_text(), re.sub(r"\n +", " ", sections[name])
        pipelined = False
        for label in ("Messages", "Bytes", "Rounds", "Between hosts"):
            claim = label.lower().replace(" ", "_")
            of_file = re.search(rf"^// {label}: +(.*)$", head, re.M) or re.search(rf'\.{claim} = "(.*)"', head)
            of_page = re.search(rf"{label}: `([^`]*)`", section)
            if (of_file and of_file[1]) != (of_page and of_page[1]):
                wrong.append(f"{name}: {label} is {of_page and of_page[1]}, in the file {of_file and of_file[1]}")
            pipelined |= label == "Messages" and bool(of_page) and "c" in of_page[1]
        time = re.search(r"^- Time: (.*?)(?=^- )", section, re.M | re.S)
        if not time or not re.search("^- Requires: ", section, re.M) or not re.search("^- Source: ", section, re.M):
            wrong.append(f"{name}: Time, Requires or Source is missing")
        else:
            check_time(name, re.findall(r"`([^`]*)`", time[1]), pipelined)

print(f"{len(files)} algorithms")
print("\n".join(wrong))
sys.exit(bool(wrong) or not files)
