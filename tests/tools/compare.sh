#!/bin/bash
# tools/compare beside peers that are here, that cannot be had, and that fail: compare.sh SOURCE_DIR PROGRAM
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
mkdir -p "$folder/tree/tools" "$folder/tree/bench" "$folder/bin"  # it builds drivers into its own tree
cp "$1/tools/compare" "$folder/tree/tools/"
cp -r "$1/bench/peers" "$folder/tree/bench/"
tutti=$2 one=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
compare() { "$folder/tree/tools/compare" --tutti "$tutti" --sizes 8,4K "$@" >"$folder/out" 2>"$folder/err"; }
with_one_processor() { taskset -cp "$one" $BASHPID >/dev/null && "$@"; }
says() { grep -qE -- "$1" "$folder/out" || { echo "not said: $1"; cat "$folder/out" "$folder/err"; exit 1; }; }

# Two MPIs: one measures 4 and 8 us, as long as it may; the other's ranks fail.
for key in openmpi mpich; do
  printf '#!/bin/bash\nwhile [ "$1" != -o ]; do shift; done; touch "$2"\n' >"$folder/bin/mpicxx.$key"
done
cat >"$folder/bin/mpirun.mpich" <<'FAKE'
#!/bin/bash
[ "$1" != --version ] || { printf 'HYDRA build details:\n    Version:   9.8.7\n'; exit; }
printf 'a warning, 12\n8 %s\n4096 8.0000\n' "${MPIR_CVAR_ENABLE_HEAVY_YIELD:-4}.0000"
FAKE
printf '#!/bin/bash\n[ "$1" = --version ] && echo "mpirun (Open MPI) 4.5.6" || { echo boom >&2; exit 3; }\n' \
  >"$folder/bin/mpirun.openmpi"
chmod +x "$folder"/bin/*
export PATH=$folder/bin:$PATH

echo "A peer stands beside tutti with its version; one that fails twice is left out"
compare --rounds 3 --json "$folder/json"  # the cores may move in each turn, so there may be no table
says '^# Open MPI 4\.5\.6, Debian, han, sm: 2 turns without figures, and no more turns: it failed \(3\): boom$'
says '^# a first look: a verdict takes 25 rounds'
[ "$(grep -c '^boom' "$folder/err")" = 4 ]
grep -q '"MPICH 9.8.7, Debian"' "$folder/json"
[ "$(grep -cE '^ +[48]\.0,$' "$folder/json")" = 6 ]

echo "Where ranks outnumber the processors, that is said, and the peer gives way"
(with_one_processor compare --rounds 1 --without openmpi)
says '^# shared cores: 1 of 1 rounds; others took [0-9]+% of the processors, at most [0-9]+%$'
says '^# MPICH 9\.8\.7, Debian gives way with .*MPIR_CVAR_ENABLE_HEAVY_YIELD=1'
says '^ +symmetric +limit +limit +9\.8\.7 '
says '^ *8 B( +[0-9.]+){4} +1\.00( +[0-9.]+){2}$'
says '^ *4 KiB( +[0-9.]+){4} +8\.00( +[0-9.]+){2}$'

echo "A peer that cannot be had is named, with the reason"
rm -r "$folder/tree/build" "$folder/bin/mpirun.mpich"
printf '#!/bin/bash\nexit 1\n' >"$folder/bin/mpicxx.openmpi"
compare --rounds 1
says '^# Open MPI 4\.5\.6, Debian is left out: mpicxx\.openmpi has failed \(1\)'
[ -x /usr/bin/mpirun.mpich ] || says '^# MPICH, Debian is left out: it is not installed \(Debian: libmpich-dev mpich\)'
(PIP_NO_INDEX=1 with_one_processor compare --rounds 1 --peers pypi --peers-dir "$folder/peers" --without openmpi \
  --without impi --without oneccl)
says '^# MPICH 5[.0-9]+ is left out: (pip has failed|Python cannot make)'
says '^ *8 B( +[0-9.]+){4} +- +-$'

echo "A wrong command line is told"
for wrong in '--peers system' '--without nobody' '--touch --collective ping_pong'; do
  ! compare $wrong || { echo "no error: $wrong"; exit 1; }
done
! tutti=$folder/none compare
grep -q 'is not there' "$folder/err"
