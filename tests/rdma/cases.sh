# What one_guest and two_guests share.
tutti=$1/bin/tutti extent=${2-}
[ -x "$tutti" ] || { echo "usage: $0 BUILD_DIR [all], a build with its program built" >&2; exit 2; }
work=$(mktemp -d)
failed=0

# NAME COMMAND...: one line, and what the command said if it failed
try() {
  local name=$1 said begun=$SECONDS
  shift
  if said=$("$@" 2>&1); then
    echo "ok      $name ($((SECONDS - begun)) s)"
    [ -z "${shows-}" ] || sed 's/^/        /' <<<"$said"
  else
    echo "FAILED  $name ($((SECONDS - begun)) s)"
    sed 's/^/        /' <<<"$said"
    failed=1
  fi
}

no_wrong() { [ "$1" ] && ! grep -v '"wrong":0,' <<<"$1"; }  # ROWS of a bench

# That r0 has sent so far, to this guest's own ranks too.
packets() { cat /sys/class/infiniband/r0/ports/1/hw_counters/sent_pkts; }

# Measures as told; that it ends well, and no row has a wrong element.
right() {
  local rows
  rows=$(timeout 60 "$tutti" bench --rounds 1 --iterations 2 --json "$@") || return
  no_wrong "$rows"
}

nothing_registered() {
  local regions
  regions=$(rdma resource show mr) && echo "$regions" && [ -z "$regions" ]
}

# The device is busy, within ten seconds: the ranks may begin late on a machine that others use too.
moving() {
  local before
  for _ in {1..10}; do
    before=$(packets)
    sleep 1
    [ $(($(packets) - before)) -le 50 ] || return 0
  done
  echo "the ranks do not move anything"
  return 1
}

# RANK SIZE MASTER COMMAND...: one rank in the background; its output in $work/RANK, its pid in pids[RANK]
declare -A pids
rank() {
  TUTTI_RANK=$1 TUTTI_SIZE=$2 TUTTI_MASTER=$3 TUTTI_SECRET=of-this-test "${@:4}" >"$work/$1" 2>&1 &
  pids[$1]=$!
}
alive() { kill -0 "${pids[$1]}" 2>/dev/null; }

# SECONDS RANK PATTERN: within that time it has ended with 1, and its output has the pattern
ends() {
  local code=0 begun thread
  begun=$(date +%s%N)
  while alive "$2" && [ $(($(date +%s%N) - begun)) -lt ${1}000000000 ]; do sleep 0.05; done
  if alive "$2"; then
    echo "rank $2 has not ended after $1 s; it says:"
    cat "$work/$2"
    echo "Its threads wait in:"
    for thread in "/proc/${pids[$2]}/task"/*; do
      echo "$(cat "$thread/comm"): $(grep State "$thread/status"), $(paste -sd' ' "$thread/stack")"
    done
    ss --tcp --all --processes --numeric
    rdma resource show qp
    kill -9 "${pids[$2]}"
    return 1
  fi
  wait "${pids[$2]}" || code=$?
  echo "rank $2 ended with $code after $((($(date +%s%N) - begun) / 1000000)) ms, and says:"
  cat "$work/$2"
  [ "$code" = 1 ] && grep -q "$3" "$work/$2"
}
