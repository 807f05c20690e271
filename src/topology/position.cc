// In which cache, memory node and package of a machine a place lies.
#include <hwloc.h>

#include "topology/bitmap.h"
#include "topology/machine.h"

namespace tutti::internal::topology {
namespace {

// The smallest memory node that is near to all of them; of several that serve the same cores hwloc names ordinary
// memory first.
hwloc_obj_t nearest_node(hwloc_topology_t topology, const Bitmap& here) {
  hwloc_obj_t nearest = nullptr;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    if (!hwloc_bitmap_isincluded(here.get(), node->cpuset)) continue;
    if (nearest == nullptr || hwloc_bitmap_weight(node->cpuset) < hwloc_bitmap_weight(nearest->cpuset)) nearest = node;
  }
  return nearest;
}

}  // namespace

std::optional<int> Machine::node_of(const Processors& where) const {
  if (where.empty() || hwloc_get_nbobjs_by_type(topology_.get(), HWLOC_OBJ_NUMANODE) < 2) return std::nullopt;
  const hwloc_obj_t nearest = nearest_node(topology_.get(), Bitmap(where));
  if (nearest == nullptr || hwloc_bitmap_isequal(nearest->cpuset, hwloc_get_root_obj(topology_.get())->cpuset))
    return std::nullopt;
  return static_cast<int>(nearest->os_index);
}

Position Machine::position_of(const Processors& where) const {
  Position position;
  if (where.empty()) return position;
  const Bitmap here(where);
  hwloc_obj_t part = hwloc_get_obj_covering_cpuset(topology_.get(), here.get());
  for (; part != nullptr; part = part->parent) {  // so that the largest cache comes last
    if (part->type == HWLOC_OBJ_PACKAGE) position.package = static_cast<int>(part->logical_index);
    if (!hwloc_obj_type_is_dcache(part->type)) continue;
    position.cache_level = static_cast<int>(part->attr->cache.depth);
    position.cache = static_cast<int>(part->logical_index);
    position.cache_bytes = part->attr->cache.size;
  }
  if (const hwloc_obj_t node = nearest_node(topology_.get(), here))
    position.node = static_cast<int>(node->logical_index);
  return position;
}

}  // namespace tutti::internal::topology
