#!/bin/bash
# tools/check counts cases, and names those that fail: cases.sh SOURCE_DIR
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/report" <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)"
	tests="6"
	failures="4"
	>
	<testcase name="Fake.Alone.Passes/shm  # GetParam() = &quot;shm&quot;" classname="x" time="0.1" status="run">
		<system-out>[ RUN      ] Alone.Passes/shm
said without a line's end[       OK ] Alone.Passes/shm, where GetParam() = "shm" (0 ms)
[  PASSED  ] 1 test.
</system-out>
	</testcase>
	<testcase name="whole_test" classname="x" time="0.1" status="fail">
		<failure message=""/>
		<system-out>[ RUN      ] Whole.Passes
[       OK ] Whole.Passes (0 ms)
[ RUN      ] Whole.Fails
1 &lt; 0 &amp;&amp; so on
[  FAILED  ] Whole.Fails (1 ms)
[ RUN      ] Whole.IsSkipped
[  SKIPPED ] Whole.IsSkipped (0 ms)
[  SKIPPED ] 1 test, listed below:
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Whole.Fails
</system-out>
	</testcase>
	<testcase name="dies_test" classname="x" time="0.1" status="fail">
		<failure message=""/>
		<system-out>[ RUN      ] Whole.PassesToo
[       OK ] Whole.PassesToo (0 ms)
[ RUN      ] Whole.Dies
ERROR: AddressSanitizer</system-out>
	</testcase>
	<testcase name="leaks_test" classname="x" time="0.1" status="fail">
		<failure message=""/>
		<system-out>[ RUN      ] Whole.Leaks
[       OK ] Whole.Leaks (0 ms)
ERROR: LeakSanitizer
</system-out>
	</testcase>
	<testcase name="Script.Passes" classname="x" time="0.1" status="run">
		<system-out>ok
</system-out>
	</testcase>
	<testcase name="Script.IsSkipped" classname="x" time="0.1" status="notrun">
		<skipped message=""/>
		<system-out></system-out>
	</testcase>
	<testcase name="Script.Fails" classname="x" time="0.1" status="fail">
		<failure message=""/>
		<system-out>why
</system-out>
	</testcase>
</testsuite>
END
echo "Counts: passed, failed, skipped"
diff <(awk -v preset=dev -v wrong="$work/wrong" -f "$1/tools/cases.awk" "$work/report") <(echo "5 4 2")
echo "Names, and what was said"
diff "$work/wrong" - <<'END'
dev: whole_test: Whole.Fails
    [ RUN      ] Whole.Fails
    1 < 0 && so on
    [  FAILED  ] Whole.Fails (1 ms)
dev: dies_test: Whole.Dies (did not end)
    [ RUN      ] Whole.Dies
    ERROR: AddressSanitizer
dev: leaks_test
    [ RUN      ] Whole.Leaks
    [       OK ] Whole.Leaks (0 ms)
    ERROR: LeakSanitizer
dev: Script.Fails
    why
END
