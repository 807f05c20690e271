#!/bin/bash
# What the README and the pages under docs/ say is so: readme.sh SOURCE_DIR
set -euo pipefail
cd "$1"
echo "The README is short"
[ "$(wc -l <README.md)" -le 120 ]
echo "The first program is examples/first.cc, which the build compiles"
diff examples/first.cc <(sed -n '/^```cpp/,/^```$/{/^```/!p}' README.md)
echo "The table of the environment has the variables that the library reads"
diff <(grep -oh '"TUTTI_[A-Z_]*"' src/control/env.cc | tr -d '"' | sort -u) \
     <(grep '^- `TUTTI_' docs/reference/environment.md | cut -d . -f 1 | grep -o 'TUTTI_[A-Z_]*' | sort -u)
pages=(README.md CONTRIBUTING.md SECURITY.md docs/*.md docs/*/*.md src/collectives/README.md bench/README.md)
wrong=0
echo "The files that the pages name exist"
for page in "${pages[@]}"; do
  for path in $(grep -oE '`(src|tools|include|data|docs|examples|tests|bench)/[A-Za-z0-9_./-]*`' "$page" | tr -d '`' | sort -u); do
    [ -e "$path" ] || { echo "$page: there is no $path"; wrong=1; }
  done
done
echo "Their links lead somewhere"
for page in "${pages[@]}"; do
  for link in $(grep -oE '\]\([^)#]+' "$page" | cut -c 3- | grep -v '^https\?:' | sort -u); do
    [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link leads nowhere"; wrong=1; }
  done
done
echo "No line has more than 120 characters, but for what programs have printed"
find . \( -name .git -o -name 'build*' -o -path ./bench/results \) -prune -o -name '*.md' -print | sort |
  LC_ALL=C.UTF-8 xargs grep -HnP '^.{121,}' && wrong=1
exit $wrong
