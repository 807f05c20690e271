// Which GPUs this process can use, or in words why it can use none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::internal::cuda {

struct Device {
  int index;         // as cudaSetDevice() takes it
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t memory_bytes;
  std::string pci;  // "0000:3b:00.0"
};

struct Devices {
  std::vector<Device> usable;
  std::vector<std::string> reasons;  // for each device that is not, and if there is none at all
  std::string why_none() const;      // the reasons in one line
};

// Looks; throws nothing. Where there is a driver, it starts that for this process, which takes some tenths of a second,
// but makes no context on a device. Without the toolkit at build time, that is the reason.
Devices find_devices();

}  // namespace tutti::internal::cuda
