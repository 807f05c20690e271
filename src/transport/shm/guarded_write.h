// A write to the private memory of another process that does not begin once the process has said stop.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::internal::shm {

// Whether this thread can make guarded writes: on x86-64, where glibc has registered it for restartable sequences (2.35
// and later, kernel 4.18), and no filter of system calls forbids process_vm_writev().
bool can_write_guarded();

// Cycles of this processor's time stamp counter; 0 where this library was built without guarded writes.
std::uint64_t time_stamp();
// From a time stamp on. It is over as well where the counter has gone back.
struct Period {
  std::uint64_t from, cycles;
};

// [at, at + bytes) of `process` = from[0, bytes), by process_vm_writev(); less than 2 GiB. 0, else errno, and then some
// may have been written. Nothing is written, and the result is ECANCELED, if `stop` is not 0; EAGAIN, if `period` is
// over.
//
// Between its look at both and the system call this thread can be stopped for any time: by SIGSTOP, or because others
// have its core. Look and call are a restartable sequence (rseq(2)): if the system takes the core away between them,
// the call is not made, and the result is EAGAIN. So if the owner of the memory has set `stop` while this thread was
// not within the system call, this thread never writes. One case is left: a debugger or a filter of system calls that
// holds the thread at the entry of the call.
int write_guarded(pid_t process, const std::byte* from, std::uint64_t at, std::size_t bytes,
                  const std::atomic<std::uint32_t>& stop, Period period);

}  // namespace tutti::internal::shm
