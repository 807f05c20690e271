#!/bin/bash
# Includes go one way (the layers of the design page): includes.sh SOURCE_DIR
set -euo pipefail
cd "$1"

# What the files of a folder may include of ours, as extended regular expressions.
declare -A may=(
  [include/tutti]='tutti/'
  [src/types]='tutti/|types/'
  [src/topology]='tutti/error\.h|topology/'
  [src/memory]='memory/'
  [src/schedule]='tutti/|types/|schedule/'
  [src/collectives]='tutti/|types/|schedule/|collectives/'
  [src/reduce]='tutti/types\.h|tutti/error\.h|types/|memory/|reduce/'
  [src/cuda]='tutti/types\.h|tutti/error\.h|reduce/|cuda/'
  [src/transport]='tutti/types\.h|tutti/error\.h|types/|memory/|transport/'
  [src/runtime]='tutti/|types/|topology/|memory/|schedule/|collectives/|reduce/|cuda/|transport/|runtime/'
  [src/trainer]='tutti/|trainer/[a-z_]+\.h'
  [src/trainer/cuda]='tutti/|trainer/|cuda/(memory|stream|check)\.h'
)

wrong=0
for folder in include/tutti src/*/ src/trainer/cuda/; do
  folder=${folder%/}
  apart=none  # what lies in the folder and is looked at by itself
  [ "$folder" = src/trainer ] && apart=src/trainer/cuda
  files=$(find "$folder" ! -path "$apart/*" \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \))
  [ -n "$files" ] || continue
  if [ -z "${may[$folder]:-}" ]; then
    echo "$folder: say in $0 what it may include"
    wrong=1
    continue
  fi
  # Quoted includes, and our folders in angle brackets, less what is allowed.
  if grep -nE '^ *# *include *("|<(tutti|types|topology|memory|schedule|collectives|reduce|cuda|transport|runtime|trainer|tools)/)' $files /dev/null |
    grep -vE "include *[\"<](${may[$folder]})"; then
    echo "^ $folder may include ${may[$folder]} only"
    wrong=1
  fi
done
exit $wrong
