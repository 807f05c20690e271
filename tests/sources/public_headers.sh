#!/bin/bash
# Every public header compiles alone, and tutti.h in C too: public_headers.sh SOURCE_DIR CXX_COMPILER C_COMPILER
set -euo pipefail
cd "$1"
wrong=0
for header in include/tutti/*.h; do
  echo "$header"
  echo "#include \"${header#include/}\"" |
    "$2" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ - || wrong=1
done
echo "include/tutti/tutti.h in C99, with what it includes"
echo '#include "tutti/tutti.h"' |
  "$3" -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude -x c - || wrong=1
exit $wrong
