#!/bin/bash
# The README's first program is examples/first.cc, which the build compiles: readme.sh SOURCE_DIR
set -euo pipefail
cd "$1"
diff examples/first.cc <(sed -n '/^```cpp/,/^```$/{/^```/!p}' README.md)
