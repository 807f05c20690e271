#include "doctor/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

using nlohmann::ordered_json;
using topology::Attachment;
using topology::Proximity;

const char* name_of(Proximity proximity) {
  switch (proximity) {
    case Proximity::pci_switch: return "pci_switch";
    case Proximity::root_complex: return "root_complex";
    case Proximity::part: return "part";
    case Proximity::machine: return "machine";
  }
  return "";
}

const char* words_for(Proximity proximity) {
  switch (proximity) {
    case Proximity::pci_switch: return "behind the same PCIe switch";
    case Proximity::root_complex: return "at the same root complex";
    case Proximity::part: return "in the same package";
    case Proximity::machine: return "across the machine";
  }
  return "";
}

std::string place_text(const std::optional<Attachment>& place) {
  if (!place) return "where it hangs is not known: hwloc does not see it";
  std::string text;
  if (place->node) text += fmt::format("memory node {}, ", *place->node);
  if (place->package) text += fmt::format("package {}, ", *place->package);
  if (place->link_gbs > 0) text += fmt::format("PCIe link at {:.1f} GB/s now, ", place->link_gbs);
  if (place->nearest.empty()) return text + "no network device";
  return text + fmt::format("nearest network: {} ({})", fmt::join(place->nearest, ", "), words_for(place->proximity));
}

std::string to_text(const Gpu& gpu) {
  const cuda::Device& device = gpu.device;
  return fmt::format("    GPU {}: {}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB, PCI {}\n      {}\n",
                     device.index, device.name, device.major, device.minor, device.multiprocessors,
                     static_cast<double>(device.memory_bytes) / (1 << 30), device.pci, place_text(gpu.place));
}

std::string to_text(const cuda::Link& link) {
  if (!link.is_direct)
    return fmt::format("    GPU {} and {}: neither reaches the other's memory; they meet by the host's\n", link.first,
                       link.second);
  return fmt::format("    GPU {} and {}: each reaches the other's memory, performance rank {}, {}\n", link.first,
                     link.second, link.rank,
                     link.has_atomics ? "atomics too, as NVLink has them" : "without atomics, as over PCIe");
}

std::string versions_text(const Gpus& gpus) {
  return fmt::format("NVIDIA's driver {}serves CUDA up to {}, this tutti was built with {}",
                     gpus.driver_release.empty() ? "" : gpus.driver_release + " ", gpus.cuda.driver, gpus.cuda.toolkit);
}

ordered_json null_or(const std::string& text) { return text.empty() ? ordered_json(nullptr) : ordered_json(text); }

ordered_json json_of(const Gpu& gpu) {
  const cuda::Device& device = gpu.device;
  const auto of_place = [&](auto member) -> ordered_json {
    if (!gpu.place || !((*gpu.place).*member)) return nullptr;
    return *((*gpu.place).*member);
  };
  const bool is_near = gpu.place && !gpu.place->nearest.empty();
  return {
      {"index", device.index},
      {"name", device.name},
      {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
      {"multiprocessors", device.multiprocessors},
      {"memory_bytes", device.memory_bytes},
      {"pci", device.pci},
      {"node", of_place(&Attachment::node)},
      {"package", of_place(&Attachment::package)},
      {"pcie_gbs", gpu.place && gpu.place->link_gbs > 0 ? ordered_json(gpu.place->link_gbs) : ordered_json(nullptr)},
      {"nearest", gpu.place ? gpu.place->nearest : std::vector<std::string>()},
      {"nearest_by", is_near ? ordered_json(name_of(gpu.place->proximity)) : ordered_json(nullptr)}};
}

// Nothing where hwloc fails: that costs the words about where the GPUs hang, and no more.
std::optional<topology::Machine> machine_with_devices() try {
  return topology::Machine::here_with_devices();
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

Gpus find_gpus() {
  cuda::Devices found = cuda::find_devices();
  Gpus gpus;
  gpus.cuda = cuda::versions();
  std::ifstream("/sys/module/nvidia/version") >> gpus.driver_release;
  if (found.usable.empty()) gpus.why_none = found.why_none();
  gpus.links = cuda::links_among(found.usable);
  gpus.reasons = std::move(found.reasons);
  if (found.usable.empty()) return gpus;
  const auto machine = machine_with_devices();
  for (const cuda::Device& device : found.usable)
    gpus.usable.push_back({device, machine ? machine->attachment_of(device.pci) : std::nullopt});
  return gpus;
}

std::string gpus_text(const Gpus& gpus) {
  if (gpus.usable.empty()) return fmt::format("GPUs: none: {}\n", gpus.why_none);
  std::string text = fmt::format("GPUs: {}; {}\n", gpus.usable.size(), versions_text(gpus));
  for (const Gpu& gpu : gpus.usable) text += to_text(gpu);
  for (const std::string& reason : gpus.reasons) text += fmt::format("    not usable: {}\n", reason);
  for (const cuda::Link& link : gpus.links) text += to_text(link);
  if (!gpus.links.empty()) text += "      (performance rank: 0 is the fastest link of this machine)\n";
  return text;
}

ordered_json gpus_json(const Gpus& gpus) {
  ordered_json devices = nlohmann::json::array(), links = nlohmann::json::array();
  for (const Gpu& gpu : gpus.usable) devices.push_back(json_of(gpu));
  for (const cuda::Link& link : gpus.links)
    links.push_back({{"first", link.first},
                     {"second", link.second},
                     {"direct", link.is_direct},
                     {"rank", link.is_direct ? ordered_json(link.rank) : ordered_json(nullptr)},
                     {"atomics", link.has_atomics}});
  return {{"why_none", null_or(gpus.why_none)},
          {"driver", null_or(gpus.driver_release)},
          {"driver_cuda", null_or(gpus.cuda.driver)},
          {"toolkit", null_or(gpus.cuda.toolkit)},
          {"unusable", gpus.reasons},
          {"devices", devices},
          {"links", links}};
}

}  // namespace tutti::internal::tools
