#!/bin/bash
# tools/scaling measures, predicts and says what is wrong: scaling.sh SOURCE_DIR PROGRAM
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
echo "tutti table 1" > "$folder/table"
scaling() { "$1/tools/scaling" --tutti "$2" --rounds 1 --sizes 8,4K --table "$folder/table" "${@:3}"; }

echo "A row a size and number of ranks, over either transport"
for transport in shm tcp; do
  scaling "$1" "$2" --ranks 1,2,3 --transport $transport --json "$folder/json" > "$folder/out"
  [ "$(grep -cE '^ *(8 B|4 KiB) ' "$folder/out")" = 6 ]
  grep -q '^# median relative error' "$folder/out"
  grep -q predicted_us "$folder/json"
done
echo "Forms of the call beside the first"
scaling "$1" "$2" --ranks 3 --variant kept= --variant 'any=--order any --algorithm ring' > "$folder/out"
grep -q 'any/kept' "$folder/out"
grep -q 'one_shot / ring' "$folder/out"
echo "What fails is told"
! scaling "$1" "$2" --ranks 3 --variant 'ring=--algorithm ring' 2> "$folder/err"
grep -q 'canonical order' "$folder/err"
! scaling "$1" "$2" --ranks two 2> "$folder/err"
grep -q 'are numbers' "$folder/err"
