// How much memory the system has left.
#pragma once

#include <cstdint>

namespace tutti::internal {

// Bytes that the kernel thinks it can give without swapping (MemAvailable of /proc/meminfo, proc(5)); the largest
// number where it does not say.
std::uint64_t available_memory_bytes();

}  // namespace tutti::internal
