// Linked into the test programs whose tutti_test() does not say THREADS, which ThreadSanitizer leaves out. It proves
// that they may be left out: a case that starts a thread, itself or in a process that it forks, fails.
#pragma once

namespace tutti::internal {

// How many threads were started since the last call, in this process and those forked from it. A process that runs
// another program is not counted from there on.
int take_threads_started();

// Fails the running case if any was.
void expect_no_thread_started();

}  // namespace tutti::internal
