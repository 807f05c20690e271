"""Puts the shared library, the program and what both need into a wheel: for CMakeLists.txt here.

    bundle.py --patchelf PATCHELF --strip STRIP LIBRARY PROGRAM WHEEL

What every Linux with Python has is left out: glibc, and the libraries of GCC. The other libraries are copied to tutti.libs,
under names that nobody else uses: else a process that has another version of libcrypto would get one of them for both. The
copyright of each goes with it, where it is a Debian package's.
"""
import argparse
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

OF_EVERY_SYSTEM = re.compile(
    r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s))\.so\.[0-9]+")


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def needed(file, patchelf):
    return [name for name in output(patchelf, "--print-needed", file).split() if not OF_EVERY_SYSTEM.fullmatch(name)]


def found(file):
    """Where the loader finds what the file needs, and what these need: path by name."""
    lines = re.findall(r"^\s*(\S+) => (\S+|not found)", output("ldd", file), re.MULTILINE)
    return {name: Path(path).resolve() for name, path in lines if path != "not found"}


def copyright_of(library):
    package = subprocess.run(["dpkg-query", "--search", library], capture_output=True, text=True)
    file = Path("/usr/share/doc", package.stdout.split(":")[0], "copyright") if package.returncode == 0 else None
    return file if file and file.exists() else None


class Bundle:
    def __init__(self, wheel, patchelf, strip):
        self.wheel, self.patchelf, self.strip = wheel, patchelf, strip
        self.libraries = wheel / "tutti.libs"
        self.libraries.mkdir(parents=True, exist_ok=True)
        self.names = {}  # new by old

    def add(self, source, target, rpath, paths):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.chmod(0o755)
        output(self.strip, "--strip-unneeded", target)
        changes = ["--set-rpath", rpath]
        for name in needed(target, self.patchelf):
            changes += ["--replace-needed", name, self.library(name, paths)]
        output(self.patchelf, *changes, target)

    def library(self, name, paths):
        if name not in self.names:
            source = paths[name]
            if Path(source).name.startswith("libibverbs"):
                raise SystemExit("libibverbs loads the system's drivers, which suit the system's own libibverbs only")
            stem, _, version = name.partition(".so")
            digest = hashlib.sha256(source.read_bytes()).hexdigest()[:8]
            self.names[name] = new = f"{stem}-tutti-{digest}.so{version}"
            self.add(source, self.libraries / new, "$ORIGIN", paths)
            output(self.patchelf, "--set-soname", new, self.libraries / new)
            if copyright := copyright_of(paths[name]):
                shutil.copy(copyright, self.libraries / f"{stem}.copyright")
        return self.names[name]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patchelf", required=True)
    parser.add_argument("--strip", required=True)
    for name in ("library", "program", "wheel"):
        parser.add_argument(name, type=Path)
    args = parser.parse_args()
    bundle = Bundle(args.wheel, args.patchelf, args.strip)
    bundle.add(args.library, args.wheel / "tutti/libtutti.so.0", "$ORIGIN/../tutti.libs", found(args.library))
    bundle.add(args.program, args.wheel / "tutti/bin/tutti", "$ORIGIN/../../tutti.libs", found(args.program))


if __name__ == "__main__":
    main()
