#!/bin/bash
# pip makes a wheel of a clean copy of the sources, and it works in a virtual environment that has nothing else:
# wheel.sh BUILD_DIR PYTHON
# The wheel stays in BUILD_DIR/wheel, for wheel_in_debian.sh. Exit status 77, after why: pip lacks what it needs to make one.
set -euo pipefail
build=$(readlink -f "$1") python=$2
cd "$(dirname "$0")/../.."
root=$PWD
status=0
inside=$(tools/python-env --python "$python") || status=$?
case $status in
  0) ;;
  125) echo "skipped: python-env says above why"; exit 77 ;;
  *) exit $status ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM INT

echo "== a clean copy"
mkdir "$scratch/source" "$scratch/out"
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "$scratch/source"
else
  tar -c --exclude="./build*" . | tar -x -C "$scratch/source"
fi

# As this build is made, so that ccache knows most of the objects.
as_here=()
for name in CMAKE_{C,CXX,CUDA}_COMPILER CMAKE_{CXX,CUDA}_COMPILER_LAUNCHER \
    TUTTI_{CUDA,CUDA_ARCHITECTURES,VERBS,WERROR,TOGETHER}; do
  value=$(sed -n "s/^$name:[A-Z]*=//p" "$build/CMakeCache.txt")
  [ -z "$value" ] || as_here+=(-C "cmake.define.$name=$value")
done
make_wheel() {  # SOURCES
  cd "$1/python"
  "$inside" -m pip wheel --no-build-isolation --no-deps --no-index --disable-pip-version-check --verbose \
    -C "build-dir=$1/build/wheel" "${as_here[@]}" . --wheel-dir "$scratch/out"
}
export -f make_wheel
export scratch inside
echo "== pip wheel"
# Names of files are in what ccache compares, so the copy takes the place of the sources where that can be.
if unshare --mount true 2>/dev/null; then
  covered="mount --bind '$scratch/source' '$root'; $(declare -p as_here); make_wheel '$root'"
  unshare --mount bash -euc "$covered"
else
  make_wheel "$scratch/source"
fi >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
grep -E "With|Without" "$scratch/log" || true
wheel=$(echo "$scratch"/out/*)
ls -l "$wheel"
"$inside" tests/python/wheel.py "$wheel" "$("$build/bin/tutti" --version | sed 's/^tutti \([0-9.]*\).*/\1/')"

echo "== in a virtual environment"
"$python" -m venv "$scratch/env"
"$scratch/env/bin/python" -m pip install --no-index --disable-pip-version-check "$wheel"
tests/python/installed "$scratch/env"
rm -rf "$build/wheel"
mv "$scratch/out" "$build/wheel"
