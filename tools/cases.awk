# Reads reports of ctest (--output-junit) and counts: of a GoogleTest program the cases that it began, of any other test the
# test itself. Appends each that failed, with what it said, to the file WRONG, and prints "PASSED FAILED SKIPPED".
#   awk -v preset=dev -v wrong=WRONG -f tools/cases.awk REPORT...

function decoded(text) {
  gsub(/&lt;/, "<", text)
  gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "'", text)
  gsub(/&amp;/, "\\&", text)
  return text
}

# Of much that was said the beginning, where a sanitizer says what is wrong, and the end.
function tell(what, from, i) {
  ++failed
  ++failed_here
  print preset ": " what >> wrong
  for (i = from; i < count; ++i) {
    if (count - from > 80 && i == from + 40) {
      print "    ..." >> wrong
      i = count - 40
    }
    print "    " decoded(lines[i]) >> wrong
  }
}

# The test is named after its only case, or after the whole program.
function case_name() { return index(test, running) ? test : test ": " running }

/^[[:space:]]*<testcase / {
  split($0, quoted, "\"")
  test = decoded(quoted[2])
  bad = /status="fail"/
  not_run = /status="(notrun|disabled)"/
  count = begun = failed_here = 0
  running = ""
  inside = 1
  next
}
!inside || /^<\/system-out>$/ || /^[[:space:]]*<(failure|skipped|properties|property|\/properties)/ { next }
/<\/testcase>/ {
  inside = 0
  if (running != "") tell(case_name() " (did not end)", first)
  else if (bad && !failed_here) tell(test, 0)
  else if (!begun && not_run) ++skipped
  else if (!begun && !bad) ++passed
  next
}
{
  sub(/^[[:space:]]*<system-out>/, "")
  sub(/<\/system-out>$/, "")
  if (match($0, /\[ RUN      \] /)) {
    running = decoded(substr($0, RSTART + RLENGTH))
    ++begun
    first = count
  }
  lines[count++] = $0
  if (running == "") next
  if (/\[       OK \] /) ++passed
  else if (/\[  SKIPPED \] /) ++skipped
  else if (/\[  FAILED  \] /) tell(case_name(), first)
  else next
  running = ""
}
END { print passed + 0, failed + 0, skipped + 0 }
