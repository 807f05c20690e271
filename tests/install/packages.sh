#!/bin/bash
# The Debian packages are what they should be, and in a clean Debian that has nothing else of tutti, outside programs are
# built and run with them: packages.sh BUILD_DIR CPACK C_COMPILER [NCCL_INCLUDE_DIRS]
# NCCL_INCLUDE_DIRS, with a : between them: NCCL's header and CUDA's, if libtutti_nccl was built. The clean Debian has
# neither, so a program for NCCL is compiled here and linked there.
# Exit status 77, after why: this machine cannot make packages, or no clean Debian.
set -euo pipefail
build=$(readlink -f "$1") cpack=$2 cc=$3 nccl=${4:-}
cd "$(dirname "$0")/../.."
command -v dpkg-shlibdeps >/dev/null || { echo "there is no dpkg-shlibdeps here (Debian: dpkg-dev)"; exit 77; }
tools/debian-root --prepare || { [ $? = 125 ] && exit 77; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM INT

echo "== cpack"
"$cpack" --config "$build/CPackConfig.cmake" -B "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
mkdir "$scratch/in"
mv "$scratch"/*.deb "$scratch/in"
cd "$scratch/in"
version=$("$build/bin/tutti" --version | sed 's/^tutti \([0-9.]*\).*/\1/')
(shopt -s nullglob; printf '%s\n' *.deb) | diff - <(printf "%s_$version-1_amd64.deb\n" libtutti-dev ${nccl:+libtutti-nccl0} libtutti0 tutti-tools)

# PACKAGE FIELD: what it says there
says() { dpkg-deb --field "$1_$version-1_amd64.deb" "$2"; }
packages=(libtutti0 libtutti-dev tutti-tools ${nccl:+libtutti-nccl0})
for package in "${packages[@]}"; do
  dpkg-deb --info "$package"_*.deb
  [ "$(says $package Architecture) $(says $package Version)" = "amd64 $version-1" ]
  dpkg-deb --contents "$package"_*.deb | awk '$2 != "root/root" {print "not of root: " $0; wrong = 1} END {exit wrong}'
done
says libtutti-dev Depends | grep -qF "libtutti0 (= $version-1)"
for package in libtutti0 tutti-tools; do says $package Depends | grep -q 'libc6.*libfmt9.*libhwloc15.*libssl3'; done
dpkg-deb --ctrl-tarfile libtutti0_*.deb | tar -xO ./shlibs | grep -x "libtutti 0 libtutti0 (>= .*)"
if [ "$nccl" ]; then
  says libtutti-nccl0 Depends | grep -F "libtutti0 (= $version-1)" | grep -q libc6
  dpkg-deb --ctrl-tarfile libtutti-nccl0_*.deb | tar -xO ./shlibs | grep -x "libtutti_nccl 0 libtutti-nccl0 (>= .*)"
fi
dpkg-deb --ctrl-tarfile libtutti0_*.deb | tar -xO ./postinst | grep -q ldconfig

echo "== files, but for the headers"
triple=$(dpkg-architecture --query DEB_HOST_MULTIARCH)
for deb in *.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$'; done | grep -v ./usr/include/tutti/ | LC_ALL=C sort |
  diff - <(grep . <<END | LC_ALL=C sort
./usr/bin/tutti
./usr/lib/$triple/cmake/tutti/tutti-shared-release.cmake
./usr/lib/$triple/cmake/tutti/tutti-shared.cmake
./usr/lib/$triple/cmake/tutti/tutti-static-release.cmake
./usr/lib/$triple/cmake/tutti/tutti-static.cmake
./usr/lib/$triple/cmake/tutti/tuttiConfig.cmake
./usr/lib/$triple/cmake/tutti/tuttiConfigVersion.cmake
./usr/lib/$triple/libtutti.a
./usr/lib/$triple/libtutti.so
./usr/lib/$triple/libtutti.so.0
./usr/lib/$triple/libtutti.so.$version
./usr/lib/$triple/pkgconfig/tutti.pc
$(for file in cmake/tutti/tutti-nccl-release.cmake cmake/tutti/tutti-nccl.cmake libtutti_nccl.so libtutti_nccl.so.0 \
    libtutti_nccl.so.$version pkgconfig/tutti-nccl.pc; do printf "${nccl:+./usr/lib/$triple/$file\n}"; done)
$(for package in "${packages[@]}"; do printf "./usr/share/doc/$package/%s\n" copyright changelog.gz; done)
END
)

cd - >/dev/null
cp examples/first.cc examples/c_api.c tests/install/in_root "$scratch/in"
[ ! "$nccl" ] || "$cc" -std=c99 -c tests/install/for_nccl.c -isystem ${nccl//:/ -isystem } -o "$scratch/in/for_nccl.o"
echo "== in a clean Debian"
setpriv --pdeathsig TERM tools/debian-root -i "$scratch/in" /in/in_root "$PWD" "$build" &  # ends when this script is killed
wait $!
