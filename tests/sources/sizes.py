#!/usr/bin/python3
"""Files and classes stay small: sizes.py SOURCE_DIR [--all]

Of the lengths of our source files, the 90th percentile is at most 200 lines, and none is above 500.

A class has at most 20 methods and 15 data members. LARGE lists those that have more, each with its reason. The script
fails for a class that is above and not listed, and for one that is listed and no longer above. --all prints the sizes
of all classes, the largest first. classes.py says what counts.
"""
import math
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from classes import classes_in

FOLDERS = ("include", "src", "tools", "tests", "bench", "examples")
SUFFIXES = (".h", ".c", ".cc", ".cu", ".cuh")
LINES_OF_NINE_IN_TEN, LINES = 200, 500

CLASS_FOLDERS = ("include", "src", "tools")
CLASS_SUFFIXES = (".h", ".cuh")
METHODS, MEMBERS = 20, 15
LARGE = {
    "include/tutti/communicator.h Communicator":
        "what users call: each collective in a blocking and an asynchronous form, of spans and of bytes; it holds "
        "one pointer",
    "include/tutti/settings.h Settings": "a value: a field for each setting of docs/reference/environment.md",
    "include/tutti/tutti_joining.h tutti_config": "a value: the fields of Settings that a program in C may set",
    "src/control/lines.h Lines":
        "all connections of a rank after the join: making them (six methods) could be a class of its own",
    "src/control/link.h Link":
        "one connection from connecting to close(): three of the methods only say what the handshake says; the "
        "rest shares the descriptor, its deadline and what is still to be written",
    "src/control/plane.h Plane":
        "overrides all of Control and JoinUser; its connections for data (data.cc) could be a class of their own",
    "src/control/relay.h Relay":
        "one state machine: what members say, and whom the hub takes for lost (relay_verdict.cc), over one log; a "
        "method for each message",
    "src/control/seat.h Seat":
        "one state machine: seven things that happen to it, two that its rank wants, and what is to be done; which "
        "rank is the hub (seat_hub.cc) shares the log and the relay with the rest",
    "src/executor/plan.h Plan":
        "a value, made once and then read: the steps, and what a call's buffers must be. How a call is cut into "
        "parts could be a struct in it",
    "src/transport/channel.h Channel":
        "an interface: all that the executor may ask of a transport; seven methods have defaults",
    "src/net/handshake.h Handshake":
        "one state machine, both ends of it: a method for each message; a third of the methods say how far it is",
    "src/runtime/engine.h Engine":
        "one lock, and all that happens under it; waiting for news and the end at exit could be classes",
    "src/runtime/group.h Group":
        "every way to make a call, to drive it, to wait for it and to end it with an error: in five files, not yet "
        "in classes",
    "src/runtime/job.h Job":
        "what the communicators of a rank share: two in three of the methods hand out a part or answer in one line",
    "src/runtime/request.h Request":
        "a value, one call: what it was made with, and how far it has come; half of it matters for devices only",
    "src/schedule/verify_execution.h Execution":
        "the interpreter of the verifier: a method for each kind of step and each rule, over one state; its types "
        "are nested here",
    "src/transport/shm/channel.h Channel":
        "overrides all of internal::Channel, and hands on to Sender, Receiver and Lines",
    "src/transport/verbs/channel.h Channel":
        "overrides all of internal::Channel, and hands on to Sender, Receiver and JoinedPair; the greeting could be a class",
    "src/transport/verbs/receiver.h Receiver":
        "one state, what has arrived and what is claimed: half of the methods are a line, so that Channel can ask",
    "tools/tutti/bench/options.h BenchOptions": "a value: a field for each option of `tutti bench`",
    "tools/tutti/doctor/doctor.h Findings": "a value: a field for each thing that `tutti doctor` says",
}


def sources(root, folders, suffixes):
    return sorted(path for folder in folders for path in (root / folder).rglob("*") if path.suffix in suffixes)


def check_lengths(root):
    lengths = sorted((len(path.read_text().splitlines()), str(path.relative_to(root)))
                     for path in sources(root, FOLDERS, SUFFIXES))
    ninth = lengths[math.ceil(0.9 * len(lengths)) - 1][0]
    print(f"{len(lengths)} files: nine in ten have at most {ninth} lines, the longest {lengths[-1][0]}")
    if ninth <= LINES_OF_NINE_IN_TEN and lengths[-1][0] <= LINES:
        return True
    print(f"That is more than {LINES_OF_NINE_IN_TEN} and {LINES}. The longest:")
    for length, path in reversed(lengths[-10:]):
        print(f"  {length} {path}")
    return False


def check_classes(root, show_all):
    sizes = {}
    for path in sources(root, CLASS_FOLDERS, CLASS_SUFFIXES):
        for name, size in classes_in(path.read_text()).items():
            sizes[f"{path.relative_to(root)} {name}"] = size
    above = {name: size for name, size in sizes.items() if size[0] > METHODS or size[1] > MEMBERS}
    print(f"{len(sizes)} classes: {len(above)} have more than {METHODS} methods or {MEMBERS} data members")
    if show_all:
        for name, (methods, members) in sorted(sizes.items(), key=lambda item: (-sum(item[1]), item[0])):
            print(f"  {methods:3} methods, {members:3} data members: {name}")
    for name in sorted(above.keys() - LARGE.keys()):
        methods, members = above[name]
        print(f"{name} has {methods} methods and {members} data members: take it apart, or list it in LARGE of "
              "tests/sources/sizes.py with a reason")
    for name in sorted(LARGE.keys() - above.keys()):
        print(f"{name} is in LARGE of tests/sources/sizes.py and need not be: take it out" if name in sizes else
              f"{name} is in LARGE of tests/sources/sizes.py, and there is no such class: take it out")
    return above.keys() == LARGE.keys()


def main():
    root = Path(sys.argv[1])
    are_short, are_small = check_lengths(root), check_classes(root, "--all" in sys.argv)
    sys.exit(not (are_short and are_small))


main()
