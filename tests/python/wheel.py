"""A wheel has what it should, and only that: wheel.py WHEEL VERSION"""
import re
import sys
import sysconfig
import zipfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent.parent / "python/tutti"
# By these names: _native.cpython-311-x86_64-linux-gnu.so, libfmt-tutti-0123abcd.so.9 and libfmt.copyright.
LIBRARY = re.compile(r"tutti\.libs/lib(crypto|fmt|hwloc|hwy|udev)(-tutti-[0-9a-f]{8}\.so\.[0-9]+|\.copyright)")
PROGRAMS = {"tutti/bin/tutti", "tutti/libtutti.so.0", f"tutti/_native{sysconfig.get_config_var('EXT_SUFFIX')}"}


def main():
    wheel, version = Path(sys.argv[1]), sys.argv[2]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name == f"tutti-{version}-{python}-{python}-linux_x86_64.whl", wheel.name
    info = f"tutti-{version}.dist-info"
    expected = PROGRAMS | {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    expected |= {str(Path("tutti") / file.relative_to(SOURCES)) for pattern in ("*.py", "*.pyi", "py.typed")
                 for file in SOURCES.rglob(pattern)}
    with zipfile.ZipFile(wheel) as opened:
        files = set(opened.namelist())
        entry_points = opened.read(f"{info}/entry_points.txt").decode()
    libraries = {name for name in files if LIBRARY.fullmatch(name)}
    assert files - libraries == expected, f"too many: {files - libraries - expected}; missing: {expected - files}"
    assert any("libcrypto-tutti" in name for name in libraries), libraries
    assert "[torch.distributed.backends]\ntutti = tutti.torch:register\n" in entry_points, entry_points
    print(f"{len(files)} files, {wheel.stat().st_size / 1e6:.1f} MB")


main()
