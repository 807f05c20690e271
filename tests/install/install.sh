#!/bin/bash
# What is installed serves programs in C and C++ that find it by CMake or pkg-config, and link either library:
# install.sh BUILD_DIR CMAKE GENERATOR C_COMPILER CXX_COMPILER [NCCL_INCLUDE_DIRS]
# NCCL_INCLUDE_DIRS, with a : between them: NCCL's header and CUDA's, if libtutti_nccl was built.
set -euo pipefail
build=$(readlink -f "$1") cmake=$2 generator=$3 cc=$4 cxx=$5 nccl=${6:-}
cd "$(dirname "$0")"
examples=../../examples
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/usr
"$cmake" --install "$build" --prefix "$prefix" >/dev/null
library=$(find "$prefix" -name libtutti.so.0)
export LD_LIBRARY_PATH=${library%/*}
export PKG_CONFIG_PATH=${library%/*}/pkgconfig

# PROGRAM shared|static: it links that library, and three ranks of it run
works() {
  local needs=static
  ! readelf -d "$1" | grep -q 'NEEDED.*libtutti.so.0' || needs=shared
  echo "$1 links the $needs library"
  [ $needs = "$2" ]
  "$prefix/bin/tutti" run -n 3 "$1"
}

# What the library throws, a program catches, whichever it links.
catches() {
  local said status=0
  said=$(TUTTI_TRANSPORT=pigeon "$1" 2>&1) || status=$?
  echo "$said"
  [ $status = 1 ] && grep -q pigeon <<<"$said"
}

with_cmake() {  # FOLDER OUTPUT ARGUMENTS...
  "$cmake" -G "$generator" -S "$1" -B "$scratch/$2" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "${@:3}"
}

for kind in "" shared static; do
  echo "== find_package(tutti${kind:+ COMPONENTS $kind})"
  with_cmake consumer "cmake_$kind" -DKIND=$kind >/dev/null
  "$cmake" --build "$scratch/cmake_$kind" >/dev/null
  for program in in_cpp in_c; do works "$scratch/cmake_$kind/$program" "${kind:-shared}"; done
  catches "$scratch/cmake_$kind/in_cpp"
done
echo "== a project in C alone"
with_cmake consumer_in_c cmake_c >/dev/null 2>&1
"$cmake" --build "$scratch/cmake_c" >/dev/null
works "$scratch/cmake_c/in_c" shared
if [ "$nccl" ]; then
  for_nccl() {  # PROGRAM: it runs on NCCL's functions as they are installed, and on no NCCL
    readelf -d "$1" | grep 'NEEDED.*libtutti_nccl.so.0'
    "$1" | grep 'the sum is right'
  }
  echo "== a program for NCCL"
  with_cmake consumer_of_nccl cmake_nccl -DNCCL_INCLUDE="${nccl//:/;}" >/dev/null 2>&1
  "$cmake" --build "$scratch/cmake_nccl" >/dev/null
  for_nccl "$scratch/cmake_nccl/for_nccl"
  "$cc" -std=c99 for_nccl.c -isystem ${nccl//:/ -isystem } $(pkg-config --libs tutti-nccl) -o "$scratch/for_nccl"
  for_nccl "$scratch/for_nccl"
  # Preloaded by its path alone, it finds libtutti.so beside itself.
  (unset LD_LIBRARY_PATH; LD_PRELOAD=${library%/*}/libtutti_nccl.so.0 python3 -c 'import ctypes
assert ctypes.CDLL(None).ncclGroupStart() == 0 and ctypes.CDLL(None).ncclGroupEnd() == 0')
else
  echo "== a program for NCCL: left out, libtutti_nccl was not built"
fi
echo "== a component that there is not"
if with_cmake consumer cmake_wrong -DKIND=frozen >"$scratch/said" 2>&1; then exit 1; fi
grep -q frozen "$scratch/said"

echo "== pkg-config"
# Hidden: as a program compiles that is a library itself, with all warnings that a header may cause.
flags=(-Wall -Wextra -Werror -fvisibility=hidden)
mkdir "$scratch/pkg"
"$cxx" -std=c++20 "${flags[@]}" $(pkg-config --cflags tutti) -c $examples/first.cc -o "$scratch/pkg/first.o"
"$cc" -std=c99 "${flags[@]}" $(pkg-config --cflags tutti) -c $examples/c_api.c -o "$scratch/pkg/c_api.o"
shared=$(pkg-config --libs tutti)
static=$(pkg-config --static --libs tutti)
static=${static/-ltutti/-l:libtutti.a}
"$cxx" "$scratch/pkg/first.o" $shared -o "$scratch/pkg/shared_in_cpp"
"$cxx" "$scratch/pkg/first.o" $static -o "$scratch/pkg/static_in_cpp"
"$cc" "$scratch/pkg/c_api.o" $shared -o "$scratch/pkg/shared_in_c"
"$cc" "$scratch/pkg/c_api.o" $static -o "$scratch/pkg/static_in_c"
for kind in shared static; do
  for program in in_cpp in_c; do works "$scratch/pkg/${kind}_$program" $kind; done
  catches "$scratch/pkg/${kind}_in_cpp"
done
echo "== dlopen()"
python3 - <<'END'
import ctypes
library, comm, value = ctypes.CDLL("libtutti.so.0"), ctypes.c_void_p(), ctypes.c_float(2.5)
assert library.tutti_comm_init_env(ctypes.byref(comm)) == 0
assert library.tutti_all_reduce(ctypes.byref(value), ctypes.byref(value), ctypes.c_size_t(1), 7, 0, comm, None) == 0
assert value.value == 2.5 and library.tutti_comm_destroy(comm) == 0
END
[ "$(pkg-config --modversion tutti)" = "$("$prefix/bin/tutti" --version | grep -o '[0-9][0-9.]*' | head -1)" ]
