#!/bin/bash
# The wheel that wheel.sh has made works in a clean Debian, to which only Python is added: wheel_in_debian.sh BUILD_DIR PYTHON
# Exit status 77, after why: there is no such wheel, no clean Debian, or another Python in it.
set -euo pipefail
build=$(readlink -f "$1") python=$2
cd "$(dirname "$0")/../.."
[ -d "$build/wheel" ] || { echo "skipped: there is no wheel in $build/wheel"; exit 77; }
tools/debian-root --prepare || { [ $? = 125 ] && exit 77; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM INT
cp "$build"/wheel/*.whl tests/python/{in_root,installed,two_ranks.py} "$scratch"
status=0
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
setpriv --pdeathsig TERM tools/debian-root -i "$scratch" /in/in_root "$version" &  # ends when this script is killed
wait $! || status=$?
[ $status != 77 ] || echo "skipped: that Debian does not have Python $version, for which the wheel is made"
exit $status
