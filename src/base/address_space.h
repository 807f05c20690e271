// What lies where in this process's address space, as the system tells (proc_pid_maps(5)).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::internal {

struct MappedRange {
  std::uintptr_t begin, end;  // [begin, end)
  std::string permissions;    // "rw-p"
  std::uint64_t offset;       // of `begin` in the file
  ino_t inode;                // of the file; 0: none
  std::string name;           // of the file, or the system's for what has none: "[heap]"; may be empty
};

// Keeps a descriptor, so that it can be asked when none is left. Not thread-safe. A forked child sees its parent's.
class AddressSpace {
 public:
  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // What is mapped of [begin, end), by address; nothing where the system does not say.
  std::optional<std::vector<MappedRange>> mapped_in(std::uintptr_t begin, std::uintptr_t end) const;

 private:
  const int fd_;  // -1: there is none
};

}  // namespace tutti::internal
