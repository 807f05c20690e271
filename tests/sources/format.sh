#!/bin/bash
# All of ours is formatted as .clang-format says: format.sh SOURCE_DIR CLANG_FORMAT
# Versions of clang-format differ; the one that counts is Debian 12's, 14.
set -euo pipefail
cd "$1"
find include src tests tools bench examples python -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' | sort | xargs "$2" --dry-run -Werror
