// How GPUs reach each other, and which versions of CUDA meet here. Includes nothing of CUDA's, and is there without it.
#pragma once

#include <string>
#include <vector>

#include "cuda/device.h"

namespace tutti::internal::cuda {

// Between two GPUs of this process.
struct Link {
  int first, second;  // as Device::index
  bool is_direct;     // each can be given the other's memory
  int rank;           // how fast the link is beside this machine's others: 0 is the fastest; where it is direct
  bool has_atomics;   // all of CUDA's, on the other's memory: NVLink has them, PCIe has not
};

// Of all pairs, the first before the second. Throws nothing: a pair of which the driver says nothing has no direct
// link.
std::vector<Link> links_among(const std::vector<Device>& devices);

// "13.0". Empty for a driver, or a toolkit at build time, that is not there.
struct Versions {
  std::string driver;   // the latest CUDA that it serves
  std::string toolkit;  // that this was built with
};
Versions versions();  // throws nothing; starts nothing in the driver

}  // namespace tutti::internal::cuda
