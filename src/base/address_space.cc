#include "base/address_space.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "base/descriptor.h"

namespace tutti::internal {

AddressSpace::AddressSpace() : fd_(above_standard(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC))) {}

AddressSpace::~AddressSpace() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::vector<MappedRange>> AddressSpace::mapped_in(std::uintptr_t begin, std::uintptr_t end) const {
  if (fd_ < 0 || ::lseek(fd_, 0, SEEK_SET) != 0) return std::nullopt;
  std::string text;
  std::array<char, 65536> piece;
  for (ssize_t bytes; (bytes = ::read(fd_, piece.data(), piece.size())) != 0;) {
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return std::nullopt;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  std::vector<MappedRange> found;
  std::istringstream maps(text);
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
