// The processors that a process may run on, and whether ranks that share a host can have one each. A processor is what
// the system gives to a thread at a time: a core, or a hardware thread of one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal::topology {

using Processors = std::vector<int>;  // ascending, by the system's numbers

// Those that the calling thread may run on: its affinity, which is never more than its cpuset.
Processors allowed_processors();

// Keeps the calling thread, and what it starts from now on, on `processors`. False when the system refuses.
bool run_on(const Processors& processors) noexcept;

// How many processors' time the control groups of this process let it have (cpu.max of cgroup v2, cpu.cfs_quota_us of
// v1, the least of it and those around it): rounded down, but at least 1; 0 where there is no such limit. `root` stands
// before /proc and /sys.
int processor_share(const std::string& root = "");

// How many processors the calling thread can really use: those allowed, as far as its share goes.
int usable_processors();

// Bytes of the largest cache that `processor` has a part in, as the system says; 0 where it does not. (The C library's
// sysconf takes a virtual machine's word for that of the whole host.) `root` stands before /sys.
std::size_t largest_cache_bytes(int processor, const std::string& root = "");

// How they travel: a bit each, processor 0 in the lowest of the first byte.
std::string to_bits(const Processors& processors);
Processors from_bits(std::string_view bits);

// Whether some of these ranks of one host must share a processor. They need not where each can have one of those it is
// allowed for itself: so ranks that a launcher has bound to a core each are not crowded, and neither are those that may
// all run everywhere, if they do not outnumber the processors. `ranks`: those that each is allowed. A quota of a
// control group (processor_share()) says nothing of this: until it is used up, all of them run at once.
bool must_share(const std::vector<Processors>& ranks);

}  // namespace tutti::internal::topology
