#include "memory/address_space.h"

#include <fstream>
#include <sstream>

namespace tutti::internal {

std::optional<std::vector<MappedRange>> mapped_in(std::uintptr_t begin, std::uintptr_t end) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return std::nullopt;
  std::vector<MappedRange> found;
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    MappedRange range{};
    char dash = 0;
    std::string device;
    fields >> std::hex >> range.begin >> dash >> range.end >> range.permissions >> range.offset >> device >> std::dec >>
        range.inode >> std::ws;
    if (!fields && !fields.eof()) return std::nullopt;
    if (range.end <= begin) continue;
    if (range.begin >= end) break;
    std::getline(fields, range.name);
    found.push_back(std::move(range));
  }
  return found;
}

}  // namespace tutti::internal
