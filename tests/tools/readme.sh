#!/bin/bash
# What the README shows is so: readme.sh SOURCE_DIR
set -euo pipefail
cd "$1"
echo "The first program is examples/first.cc, which the build compiles"
diff examples/first.cc <(sed -n '/^```cpp/,/^```$/{/^```/!p}' README.md)
echo "The table of the environment has the variables that the library reads"
diff <(grep -oh '"TUTTI_[A-Z_]*"' src/runtime/env.cc | tr -d '"' | sort -u) \
     <(grep '^| `TUTTI_' README.md | cut -d '|' -f 2 | grep -o 'TUTTI_[A-Z_]*' | sort -u)
echo "The files that it names exist"
grep -oE '`(src|tools|include|data|examples)/[a-z_./]*`' README.md | tr -d '`' | sort -u | while read -r path; do
  [ -e "$path" ] || { echo "there is no $path"; exit 1; }
done
