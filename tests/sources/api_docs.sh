#!/bin/bash
# Each public member has a comment, and doxygen finds nothing wrong in any: api_docs.sh SOURCE_DIR
# 77 where there is no doxygen: skipped.
set -euo pipefail
command -v doxygen >/dev/null || { echo "skipped: there is no doxygen"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1/tools/api_docs" "$folder"
echo "The pages have the classes and the free functions"
for page in namespacetutti classtutti_1_1Communicator structtutti_1_1Settings; do [ -s "$folder/html/$page.html" ]; done
grep -q accumulation_size_of "$folder/html/namespacetutti.html"
