// What hangs where: PCI devices, as hwloc's I/O objects say.
#include <hwloc.h>

#include <algorithm>

#include "topology/machine.h"

namespace tutti::internal::topology {
namespace {

Processors processors_near(hwloc_obj_t part) {
  Processors processors;
  for (int i = hwloc_bitmap_first(part->cpuset); i >= 0; i = hwloc_bitmap_next(part->cpuset, i))
    processors.push_back(i);
  return processors;
}

std::optional<int> package_of(hwloc_topology_t topology, hwloc_obj_t device) {
  hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, device);
  // The only one there is may lie below what the device hangs on.
  if (package == nullptr && hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) == 1)
    package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  return package == nullptr ? std::nullopt : std::optional<int>(static_cast<int>(package->os_index));
}

bool is_network(hwloc_obj_t device) {
  const hwloc_obj_osdev_type_t type = device->attr->osdev.type;
  return type == HWLOC_OBJ_OSDEV_NETWORK || type == HWLOC_OBJ_OSDEV_OPENFABRICS;
}

int height(hwloc_obj_t object) {
  int steps = 0;
  for (; object->parent != nullptr; object = object->parent) ++steps;
  return steps;
}

// The smallest part of the machine or of its bridges that has both; the device itself where one is part of the other.
hwloc_obj_t common_part(hwloc_obj_t a, hwloc_obj_t b) {
  int above_a = height(a), above_b = height(b);
  for (; above_a > above_b; --above_a) a = a->parent;
  for (; above_b > above_a; --above_b) b = b->parent;
  for (; a != b; a = a->parent) b = b->parent;
  return a;
}

Proximity meeting_at(hwloc_obj_t part) {
  if (part->type == HWLOC_OBJ_PCI_DEVICE) return Proximity::pci_switch;
  if (part->type == HWLOC_OBJ_BRIDGE)
    return part->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? Proximity::pci_switch : Proximity::root_complex;
  return part->parent == nullptr ? Proximity::machine : Proximity::part;
}

}  // namespace

std::optional<Attachment> Machine::attachment_of(const std::string& pci) const {
  hwloc_topology_t topology = topology_.get();
  const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology, pci.c_str());
  if (device == nullptr) return std::nullopt;
  Attachment found;
  found.node = node_of(processors_near(hwloc_get_non_io_ancestor_obj(topology, device)));
  found.package = package_of(topology, device);
  found.link_gbs = device->attr->pcidev.linkspeed;
  int nearest = -1;
  for (hwloc_obj_t other = nullptr; (other = hwloc_get_next_osdev(topology, other)) != nullptr;) {
    // What hangs on no bus, as a tunnel or a bond in software, is nowhere.
    if (!is_network(other) || hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PCI_DEVICE, other) == nullptr)
      continue;
    const hwloc_obj_t common = common_part(device, other);
    const int depth = height(common);
    if (depth < nearest) continue;
    if (depth > nearest) found.nearest.clear();
    nearest = depth;
    found.proximity = meeting_at(common);
    found.nearest.emplace_back(other->name);
  }
  std::ranges::sort(found.nearest);
  return found;
}

}  // namespace tutti::internal::topology
