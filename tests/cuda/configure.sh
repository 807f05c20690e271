#!/bin/bash
# What TUTTI_CUDA=AUTO, ON and OFF do where there is no toolkit: configure.sh SOURCE_DIR CMAKE GENERATOR
set -euo pipefail
source=$1 cmake=$2 generator=$3
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
export CUDACXX=$scratch/no-such-nvcc
configure() {
  "$cmake" -G "$generator" -S "$source" -B "$scratch/$1" -DTUTTI_CUDA="$1" -DTUTTI_NCCL=OFF -DTUTTI_TESTS=OFF -DTUTTI_BENCH=OFF > "$scratch/out" 2>&1
}
has() { grep -q -- "$1" "$scratch/out" || { cat "$scratch/out"; echo "does not say: $1"; exit 1; }; }

echo "AUTO does without, and says why"
configure AUTO
has 'Without CUDA: there is no nvcc'
echo "ON fails, and says what to do"
if configure ON; then echo "it does not fail"; exit 1; fi
has 'TUTTI_CUDA=ON: there is no nvcc'
has 'configure with TUTTI_CUDA=AUTO'
echo "OFF does not look"
configure OFF
if grep -i cuda "$scratch/out"; then exit 1; fi
echo "Anything else is refused"
if configure MAYBE; then echo "it does not fail"; exit 1; fi
has 'TUTTI_CUDA is AUTO, ON or OFF'
