#!/bin/bash
# Every public header compiles alone: public_headers.sh SOURCE_DIR COMPILER
set -euo pipefail
cd "$1"
wrong=0
for header in include/tutti/*.h; do
  echo "$header"
  echo "#include \"${header#include/}\"" |
    "$2" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ - || wrong=1
done
exit $wrong
