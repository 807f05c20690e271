// The GPUs of `tutti doctor`: looked up once, and that in words, or as JSON. What is said is a function of what was
// found.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/links.h"
#include "topology/machine.h"

namespace tutti::internal::tools {

struct Gpu {
  cuda::Device device;
  std::optional<topology::Attachment> place;  // nothing where hwloc does not see it
};

struct Gpus {
  std::vector<Gpu> usable;
  std::vector<std::string> reasons;  // one for each that is not
  std::string why_none;              // in one line; empty where some are usable
  std::vector<cuda::Link> links;     // of each pair of these
  cuda::Versions cuda;
  std::string driver_release;  // "580.65.06": NVIDIA's own number; empty where no driver is loaded
};

Gpus find_gpus();
std::string gpus_text(const Gpus& gpus);

// {"why_none": null, or the line, "driver": "580.65.06", "driver_cuda": "13.0", "toolkit": "13.0", "unusable": [lines],
//  "devices": [{"index", "name", "compute_capability": "9.0", "multiprocessors", "memory_bytes", "pci", "node",
//    "package", "pcie_gbs", "nearest": [names], "nearest_by": "pci_switch", "root_complex", "part" or "machine"}],
//  "links": [{"first", "second", "direct", "rank", "atomics"}]}
// null is what is not there, or not known: the rank of a link that is not direct, a node where there is but one.
nlohmann::ordered_json gpus_json(const Gpus& gpus);

}  // namespace tutti::internal::tools
