#!/bin/bash
# docs/reference/command_line.md has the options of each command, no others. It and docs/design/many_cores.md have what
# their examples of `tutti plan` print: command_line.sh SOURCE_DIR TUTTI
set -euo pipefail
page=$1/docs/reference/command_line.md
tutti=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong=0

section() { sed -n "/^## tutti $1\$/,/^## /p" "$page"; }
commands=$("$tutti" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]\{1,\}\) .*/\1/p' | sort)
echo "The page has a section for each command: " $commands
[ -n "$commands" ]
diff <(echo "$commands") <(sed -n 's/^## tutti //p' "$page" | sort) || wrong=1

for command in $commands; do
  echo "The options of tutti $command (<: of the program, >: of the page)"
  "$tutti" "$command" --help | sed -n '/^Options:/,$p' | grep -oE '^ +-[-a-z,]+' | grep -oE -- '-[-a-z]+' | sort -u >"$folder/has"
  # "- `-n`, `--ranks N`. …": what stands before the first full stop.
  section "$command" | grep -E '^- `-' | sed 's/`\..*/`/' | grep -oE '`-[-a-z]+' | tr -d '`' | sort -u >"$folder/says"
  [ -s "$folder/has" ]
  diff "$folder/has" "$folder/says" || wrong=1
done

echo "The examples of tutti plan"
cd "$1"  # examples name files of the sources
examples=0
# Each goes to a file of its own: the command in the first line, then what it prints up to a line that is not indented.
cat <(section plan) <(echo .) docs/design/many_cores.md | awk -v folder="$folder" '
  /^    \$ tutti plan / {file = folder "/example" ++count; print substr($0, 7) >file; next}
  /^[^ ]/ {file = ""}
  file {print substr($0, 5) >file}'
for example in "$folder"/example*; do
  examples=$((examples + 1))
  words=$(head -n 1 "$example")
  echo "  $words"
  # shellcheck disable=SC2086
  diff <("$tutti" ${words#tutti }) <(tail -n +2 "$example" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}') || wrong=1
done
[ $examples -ge 3 ]
exit $wrong
