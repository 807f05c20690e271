#!/bin/bash
# Files stay readable: nine of ten have fewer than 300 lines, none more than 500: lengths.sh SOURCE_DIR
set -euo pipefail
cd "$1"
find include src tests tools bench examples -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' | sort | xargs wc -l |
  awk '$2 == "total" {next}
       {files++}
       $1 > 500 {print $2 ": " $1 " lines are more than 500"; wrong = 1}
       $1 >= 300 {print $2 ": " $1 " lines"; long++}
       END {print long + 0 " of " files " files have 300 lines or more"; exit wrong || long * 10 > files}'
