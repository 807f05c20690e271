"""The command `tutti`, and `python -m tutti`: this process becomes the program that comes with the package."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = str(Path(__file__).parent / "bin" / "tutti")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
