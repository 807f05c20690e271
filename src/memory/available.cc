#include "memory/available.h"

#include <fstream>
#include <limits>
#include <string>

namespace tutti::internal {

std::uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace tutti::internal
