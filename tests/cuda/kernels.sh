#!/bin/bash
# What the compiler made of the kernels: kernels.sh CUOBJDUMP NVDISASM ARCHITECTURE OBJECT...
# Prints a line for each, and fails unless all load and store 16 bytes at a time (8-bit floats alone: 8), keep everything in registers, few enough for
# 1024 threads of a multiprocessor, and add and multiply floats with a rounding each, flushing no denormals.
set -euo pipefail
cuobjdump=$1 architecture=$3
PATH=$PATH:$(dirname "$2")
shift 3

for object in "$@"; do
  "$cuobjdump" --gpu-architecture "sm_$architecture" --dump-resource-usage "$object"
  "$cuobjdump" --gpu-architecture "sm_$architecture" --dump-sass "$object"
done | c++filt | awk '
  function name(text,  parts, op) {
    match(text, /[a-z]+_kernel</); shape = substr(text, RSTART, RLENGTH - 8)
    match(text, /Form<.*, \(tutti::Op\)[0-7], (true|false)>/); split(substr(text, RSTART + 5, RLENGTH - 6), parts, /, /)
    sub(/^tutti::/, "", parts[1]); op = substr(parts[2], length(parts[2])) + 0
    return parts[1] "|" ops[op + 1] "|" (parts[3] == "true" ? "mixed" : "-") "|" shape
  }
  BEGIN { split("sum prod min max avg band bor bxor", ops, " ") }
  /^[ \t]*Function/ { kernel = name($0); seen[kernel] = 1 }
  /REG:/ { split($1, r, ":"); registers[kernel] = r[2]; split($2, s, ":"); stack[kernel] = s[2]; split($4, l, ":"); local[kernel] = l[2] }
  /^[ \t]*\/\*[0-9a-f]+\*\/ / { ++instructions[kernel] }
  /LDG\.E[A-Z.]*\.128/ { ++loads[kernel] }
  /STG\.E[A-Z.]*\.128/ { ++stores[kernel] }
  /LDG\.E[A-Z.]*\.64/ { ++loads64[kernel] }
  /STG\.E[A-Z.]*\.64/ { ++stores64[kernel] }
  / (LDL|STL)/ { ++spills[kernel] }
  / (FFMA|DFMA)/ { ++fused[kernel] }
  / F[A-Z0-9]*\.FTZ/ { ++flushed[kernel] }
  END {
    print "type|operator|partials|shape|registers|stack and local bytes|spills|instructions|LDG.128|STG.128|fused"
    for (kernel in seen) {
      ++kernels
      split(kernel, k, "|")
      print kernel "|" registers[kernel] "|" stack[kernel] + local[kernel] "|" spills[kernel] + 0 "|" instructions[kernel] "|" loads[kernel] + 0 "|" stores[kernel] + 0 "|" fused[kernel] + 0 | "sort"
      why = ""
      if (registers[kernel] == "" || registers[kernel] > 64) why = why " more than 64 registers;"
      if (stack[kernel] + local[kernel] + spills[kernel] > 0) why = why " local memory;"
      # Cells of 8-bit floats have 8 bytes where they meet no partial results (src/cuda/form.h).
      eight = k[1] ~ /^float8/ && k[3] == "-"
      if (!eight && (loads[kernel] == 0 || stores[kernel] == 0)) why = why " no accesses of 16 bytes;"
      if (eight && (loads64[kernel] == 0 || stores64[kernel] == 0)) why = why " no accesses of 8 bytes;"
      # A division is made of fused ones; so avg may have some. Those of 8 and 32-bit integers divide as doubles.
      if (k[2] != "avg" && fused[kernel] > 0) why = why " a fused multiply-add;"
      if (k[2] != "avg" && flushed[kernel] > 0) why = why " denormals flushed;"
      if (why != "") wrong = wrong kernel ":" why "\n"
    }
    close("sort")
    print kernels + 0 " kernels"
    printf "%s", wrong
    exit kernels == 0 || wrong != ""
  }' | column -t -s '|'
