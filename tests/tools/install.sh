#!/bin/bash
# The installed package serves a project that finds it with find_package:
# install.sh BUILD_DIR CONSUMER_DIR CMAKE GENERATOR
set -euo pipefail
build=$1 consumer=$2 cmake=$3 generator=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$cmake" --install "$build" --prefix "$scratch/usr" >/dev/null
"$cmake" -G "$generator" -S "$consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/usr" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$scratch/build"
"$scratch/usr/bin/tutti" run -n 3 "$scratch/build/consumer"
"$scratch/usr/bin/tutti" run -n 3 "$scratch/build/consumer_in_c"
