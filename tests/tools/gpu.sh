#!/bin/bash
# bench/gpu writes its file and its verdicts, and ends with 1 where there is no GPU: gpu.sh SOURCE_DIR TUTTI_FAKE
set -euo pipefail
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
gpu() { "$1/bench/gpu" "$out" --tutti "$2" --only bench --out "$out/gpu.md" "${@:3}" >"$out/said" 2>"$out/errors"; }

gpu "$1" "$2" --max 512 --min-kernels 64 --target-from 64 --rounds 1 --iterations 1
grep -q '^Machine: fake GPU 0 (1 usable)' "$out/gpu.md"
grep -qF '`tutti bench reduction -n 8 --dtype bfloat16 --device cuda --sizes 64,256,512 --rounds 1`' "$out/gpu.md"
grep -qF '`tutti bench all_reduce --transport tcp -n 2 --device cuda --sizes 8,64,512 --rounds 1`' "$out/gpu.md"
for target in kernels threads staged; do grep -Eq "^(holds|missed) +$target: [0-9]+ % of" "$out/said"; done
grep -Eq '^holds +0 wrong: 0 wrong elements in [0-9]+ rows; 0 failures' "$out/said"

rm "$out/gpu.md"
status=0
TUTTI_FAKE_GPUS=0 gpu "$1" "$2" || status=$?
[ "$status" = 1 ] && [ ! -e "$out/gpu.md" ]
grep -q '^bench/gpu: there is no GPU to measure: the driver shows no GPU' "$out/errors"
